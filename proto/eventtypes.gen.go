// Code generated from openapi.yaml by make gen. DO NOT EDIT.

package proto

// EventTypes is the public catalogue; Event.internal marks all others. Types of resources that are not built
// yet are in it from the start.
var EventTypes = []EventType{
	{"booking.created", "read:bookings", "A booking was created."},
	{"booking.updated", "read:bookings", "A booking changed, other than by being cancelled."},
	{"booking.cancelled", "read:bookings", "A booking was cancelled and its unit is free again."},
	{"customer.created", "read:customers", "A customer was created."},
	{"customer.updated", "read:customers", "A customer changed."},
	{"lead.created", "read:leads", "A lead was created."},
	{"lead.updated", "read:leads", "A lead changed."},
	{"quote.created", "read:quotes", "A quote was created."},
	{"quote.accepted", "read:quotes", "A quote was accepted. Its booking is created and its invoice is opened."},
	{"invoice.created", "read:invoices", "An invoice was created."},
	{"invoice.paid", "read:invoices", "An invoice was paid in full."},
	{"payment.succeeded", "payments:read", "A payment succeeded."},
	{"payment.failed", "payments:read", "A payment was refused."},
}
