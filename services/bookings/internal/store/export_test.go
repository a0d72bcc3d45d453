package store

// Statements, for tests that ask how they are planned.
var (
	BookingsSQL  = bookingsSQL
	CalendarSQL  = calendarSQL
	DuringSQL    = bookingsDuring
	ClaimsSQL    = claimsDuring
	AllDueSQL    = allDue
	TenantDueSQL = tenantDue
	OfQuoteSQL   = bookingOfQuote
	OfLeadSQL    = bookingOfLead
	PaidSQL      = paidOf
)
