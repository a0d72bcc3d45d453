package store

// TakeWakeupsSQL is takeWakeups, for a test that reads its plan.
const TakeWakeupsSQL = takeWakeups
