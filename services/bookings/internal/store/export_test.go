package store

// BookingsSQL is the statement of a list, for tests that ask how it is planned.
var BookingsSQL = bookingsSQL
