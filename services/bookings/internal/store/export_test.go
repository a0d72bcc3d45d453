package store

// Statements, for tests that ask how they are planned.
var (
	BookingsSQL  = bookingsSQL
	ClaimsSQL    = claimsDuring
	AllDueSQL    = allDue
	TenantDueSQL = tenantDue
)
