package store

// Statements that tests use to check their plans.
var (
	BookingsSQL  = bookingsSQL
	CalendarSQL  = calendarSQL
	DuringSQL    = bookingsDuring
	ClaimsSQL    = claimsDuring
	SessionSQL   = sessionAt
	ClaimedSQL   = claimedFrom
	AllDueSQL    = allDue
	TenantDueSQL = tenantDue
	OfQuoteSQL   = bookings.Own + ofQuote
	OfLeadSQL    = bookings.Own + ofLead
	SumsSQL      = invoiceSums
)
