package store

// Statements, for tests that ask how they are planned.
var (
	BookingsSQL  = bookingsSQL
	AllDueSQL    = allDue
	TenantDueSQL = tenantDue
)
