package history

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	eventsv1 "holdfast.dev/proto/events/v1"
)

// follows are the properties that do not belong to an object's version: they follow from other objects, or from the time.
var follows = map[string][]string{
	"booking": {
		"amount_paid", "amount_refunded", "amount_credited", "amount_due", "payment_status", "invoice_ids", "customer", "disputed",
	},
	"closure":        {"conflicting_booking_ids"},
	"lead":           {"customer", "quote_ids"},
	"quote":          {"booking_status", "customer", "lead"},
	"invoice":        {"booking_status", "customer", "overdue"},
	"payment_intent": {"booking_status", "client_secret"},
}

// body is a representation of an object.
type body map[string]json.RawMessage

func (b body) text(name string) string {
	var s string
	_ = json.Unmarshal(b[name], &s)
	return s
}

func (b body) version() (n int64) {
	_ = json.Unmarshal(b["version"], &n)
	return n
}

// digest returns a hash of the body without what follows and the given properties; never 0.
func (b body) digest(without ...string) uint64 {
	without = append(without, follows[b.text("object")]...)
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if !slices.Contains(without, name) {
			fmt.Fprintf(h, "%s:%s,", name, b[name])
		}
	}
	return h.Sum64() | 1
}

// differing returns the properties in which two bodies differ. Without bodies, it returns none.
func differing(a, b []byte) (names []string) {
	var x, y body
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(y)) {
		if string(x[name]) != string(y[name]) && !slices.Contains(follows[y.text("object")], name) {
			names = append(names, fmt.Sprintf("%s is %s and %s", name, x[name], y[name]))
		}
	}
	return names
}

// StateOf returns the state that a response shows.
func StateOf(response []byte) (State, error) {
	var b body
	if err := json.Unmarshal(response, &b); err != nil {
		return State{}, fmt.Errorf("response: %w", err)
	}
	return State{Object: b.text("id"), Version: b.version(), Digest: b.digest(), Body: response}, nil
}

// EventOf returns an event of a topic.
func EventOf(topic string, e *eventsv1.Event) (Event, error) {
	out := Event{
		ID: e.GetId(), Object: e.GetObjectId(), Type: e.GetType(), Topic: topic, Key: e.GetIdempotencyKey(), Version: e.GetResourceVersion(),
		Deleted: strings.HasSuffix(e.GetType(), ".deleted") || strings.HasSuffix(e.GetType(), ".erased"),
	}
	if out.Type == "account.updated" { // the money of a booking or an invoice, with versions of its own
		out.Object = "account of " + out.Object
	}
	if len(e.GetObject()) == 0 {
		return out, nil
	}
	var after, previous body
	if err := json.Unmarshal(e.GetObject(), &after); err != nil {
		return out, fmt.Errorf("event %s: %w", e.GetId(), err)
	}
	if err := json.Unmarshal(e.GetPreviousAttributes(), &previous); err != nil {
		return out, fmt.Errorf("event %s: %w", e.GetId(), err)
	}
	out.link(after, previous)
	out.Observed = out.observed(after, previous)
	out.Deleted = out.Deleted || after.text("erased_at") != ""
	if out.Deleted || out.Type == "account.updated" || len(after["created_at"]) == 0 { // not the body of a GET
		return out, nil
	}
	out.Body, out.Previous, out.BodyVersion = e.GetObject(), e.GetPreviousAttributes(), after.version()
	out.Digest, out.After = after.digest(), after.digest("version", "updated_at")
	if len(previous) > 0 {
		before := maps.Clone(after)
		maps.Copy(before, previous)
		out.Before = before.digest("version", "updated_at")
	}
	return out, nil
}

// link gives the creation of the booking of a quote or a lead the name of a transaction, which precedes the one of the quote or the lead.
func (e *Event) link(after, previous body) {
	_, converted := previous["converted_booking_id"]
	switch {
	case e.Type == "booking.created" && e.Key == "" && after.text("quote_id") != "":
		e.Key = after.text("quote_id")
	case e.Type == "booking.created" && e.Key == "":
		e.Key = after.text("lead_id")
	case e.Type == "quote.accepted" || converted && after.text("converted_booking_id") != "":
		e.Precedes = "bookings " + e.Object
	}
}

// reported are the properties of an invoice that change when a payment or a refund is reported.
var reported = []string{"amount_paid", "amount_refunded", "amount_due", "payments", "status", "paid_at", "disputed", "overdue"}

func (e *Event) observed(after, previous body) bool {
	switch e.Type {
	case "payment.succeeded", "payment.failed", "account.updated":
		return true
	case "invoice.updated", "invoice.paid":
		for name := range previous {
			if !slices.Contains(reported, name) {
				return false
			}
		}
		return len(previous["status"]) == 0 || !slices.Contains([]string{"draft", "void", "uncollectible"}, after.text("status"))
	}
	return false
}

// withPrevious returns the body before a change, apart from version and time.
func withPrevious(e Event) []byte {
	var all, previous body
	if json.Unmarshal(e.Body, &all) != nil || json.Unmarshal(e.Previous, &previous) != nil {
		return nil
	}
	maps.Copy(all, previous)
	delete(all, "version")
	delete(all, "updated_at")
	text, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return text
}
