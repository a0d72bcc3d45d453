package store

// What a quote shows of other rows, looked up with it: it changes without the quote, and raises no version.
const (
	// quoteBookingStatus is the state of the quote's booking as it was last reported.
	quoteBookingStatus = `(select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = q.booking_id)`
	// quoteInvoiceIDs are the ids of the quote's invoices, the oldest first.
	quoteInvoiceIDs = `array(select v.id from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.quote_id = q.id
		order by v.created_at, v.id limit 100)`
)
