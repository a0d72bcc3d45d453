package tools

// definitions returns all tools.
func (t *toolbox) definitions() []definition {
	return []definition{
		read("get_tenant", "The operator: time zone, currency, current time, booking policy, mode, and what this server may do.", t.getTenant),
		read("list_catalog", "Services, units (what is booked) or packages (what is sold, with prices).", t.listCatalog),
		read("find_customers", "Find customers by name, email address, company or phone number.", t.findCustomers),
		read("find_leads", "Find leads (requests of people who are not customers yet).", t.findLeads),
		read("list_bookings", "Bookings, newest first. Filter by day, status, customer or unit.", t.listBookings),
		read("list_quotes", "Quotes, newest first.", t.listQuotes),
		read("list_invoices", "Invoices, newest first; by default those with an amount due.", t.listInvoices),
		read("get_record", "Everything about one booking, customer, lead, quote, invoice, service, unit or package, with payments.", t.getRecord),
		read("find_free_slots", "What is free: days with the units and slots that can be booked, and the lowest price. Without a filter, all units.", t.findFreeSlots),
		read("explain_slot", "Why a unit can or cannot be booked at a time, and what is free instead.", t.explainSlot),
		read("list_failures", "What failed: card payments, refunds, webhook deliveries with the last error, and requests to the API (stored for 7 days).", t.listFailures),
		write(adds, "create_customer", "Create a customer. First check with find_customers that they do not exist.", t.createCustomer),
		write(adds, "hold_slot", "Hold a slot: create a pending booking that expires after hold_minutes unless it is confirmed.", t.holdSlot),
		write(adds, "confirm_booking", "Confirm a pending booking.", t.confirmBooking),
		write(changes, "move_booking", "Move a booking to another day, time or unit. Its price stays.", t.moveBooking),
		write(changes, "cancel_booking", "Cancel a booking for good and free its unit. The policy can refund card payments automatically (booking_policy.auto_refund).", t.cancelBooking),
		write(adds, "convert_lead", "Convert a lead into a customer.", t.convertLead),
		write(adds, "create_quote", "Create a draft of a quote, from a package and a date or from lines.", t.createQuote),
		write(adds, "send_quote", "Mark a quote as sent, so that it can be accepted. The platform sends no email.", t.sendQuote),
		write(adds, "accept_quote", "Accept a sent quote for the customer: creates the booking and an invoice.", t.acceptQuote),
		write(adds, "record_payment", "Record a payment that the customer made in cash, by bank transfer or otherwise outside the platform. It charges nobody.", t.recordPayment),
	}
}
