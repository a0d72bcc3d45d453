package store

// TakeSignalsSQL is for tests that look at its plan.
const TakeSignalsSQL = takeSignals
