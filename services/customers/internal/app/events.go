package app

import (
	"encoding/json"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/customers/internal/domain"
)

// topic is the topic of this service's events. The id of the changed object is the key.
const topic = "customers"

// The events that this service emits.

func customerCreated(c domain.Customer, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "customer.created", Topic: topic, AggregateID: c.ID.String(), Version: c.Version, Object: body}
}

func customerUpdated(c domain.Customer, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "customer.updated", Topic: topic, AggregateID: c.ID.String(), Version: c.Version,
		Object: body, Previous: previous,
	}
}

// customerErased requests that the platform's own projections erase their copies. It contains only the id.
func customerErased(id domain.CustomerID, version int64, body json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "customer.erased", Topic: topic, AggregateID: id.String(), Version: version,
		Object: body, Internal: true,
	}
}

func quoteCreated(q domain.Quote, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "quote.created", Topic: topic, AggregateID: q.ID.String(), Version: q.Version, Object: body}
}

// quoteUpdated is an event for the platform's own services. Clients do not see it.
func quoteUpdated(q domain.Quote, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "quote.updated", Topic: topic, AggregateID: q.ID.String(), Version: q.Version,
		Object: body, Previous: previous, Internal: true,
	}
}

func quoteAccepted(q domain.Quote, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "quote.accepted", Topic: topic, AggregateID: q.ID.String(), Version: q.Version,
		Object: body, Previous: previous,
	}
}

func leadCreated(l domain.Lead, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "lead.created", Topic: topic, AggregateID: l.ID.String(), Version: l.Version, Object: body}
}

func leadUpdated(l domain.Lead, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "lead.updated", Topic: topic, AggregateID: l.ID.String(), Version: l.Version, Object: body, Previous: previous,
	}
}

// creditNoteUpdated is an event for the platform's own services. The invoice of the credit note has its own event.
func creditNoteUpdated(n domain.CreditNote, body, previous json.RawMessage) outbox.Event {
	return outbox.Event{
		Type: "credit_note.updated", Topic: topic, AggregateID: n.ID.String(), Version: n.Version,
		Object: body, Previous: previous, Internal: true,
	}
}

func invoiceCreated(v domain.Invoice, body json.RawMessage) outbox.Event {
	return outbox.Event{Type: "invoice.created", Topic: topic, AggregateID: v.ID.String(), Version: v.Version, Object: body}
}

// invoiceChanged returns the event invoice.paid for a change after which nothing is due, and else the internal invoice.updated.
// Bookings reads the payments in both.
func invoiceChanged(v domain.Invoice, before domain.InvoiceStatus, body, previous json.RawMessage) outbox.Event {
	e := outbox.Event{
		Type: "invoice.updated", Topic: topic, AggregateID: v.ID.String(), Version: v.Version,
		Object: body, Previous: previous, Internal: true,
	}
	if v.Status == domain.InvoicePaid && before != domain.InvoicePaid {
		e.Type, e.Internal = "invoice.paid", false
	}
	return e
}
