package holdfast

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// The delivery of the guide for receivers, which the platform signed.
const (
	deliverySecret    = "whsec_iXmNLJ8dqnN2lW/1XFIxh4HDhjVXMYInsesT3lceA20="
	deliverySignature = "78c7da3c93dc0cda287858e1d49bc56941f4b2c7cffaac0b3c90af8aba32bb27"
	deliveryTime      = 1795299475
)

func delivery(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/delivery.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// at sets the clock to a number of seconds after the delivery was signed.
func at(seconds int64) UnwrapOption {
	return WithClock(func() time.Time { return time.Unix(deliveryTime+seconds, 0) })
}

// TestUnwrap checks which deliveries are accepted.
func TestUnwrap(t *testing.T) {
	t.Parallel()
	body := delivery(t)
	other := strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		header, secret string
		body           []byte
		options        []UnwrapOption
		ok             bool
	}{
		"the delivery":                {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, true},
		"the second of two secrets":   {"t=1795299475,v1=" + other + ",v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, true},
		"the first of two secrets":    {"t=1795299475,v1=" + deliverySignature + ",v1=" + other, deliverySecret, body, []UnwrapOption{at(0)}, true},
		"spaces and other signatures": {"t=1795299475, v0=x, v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, true},
		"after 300 seconds":           {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(300)}, true},
		"300 seconds before":          {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(-300)}, true},
		"a longer tolerance":          {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(900), WithTolerance(time.Hour)}, true},
		"after 301 seconds":           {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(301)}, false},
		"301 seconds before":          {"t=1795299475,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(-301)}, false},
		"the clock of the machine":    {"t=795299475,v1=" + deliverySignature, deliverySecret, body, nil, false},
		"another time":                {"t=1795299476,v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, false},
		"another secret":              {"t=1795299475,v1=" + deliverySignature, deliverySecret + "x", body, []UnwrapOption{at(0)}, false},
		"another body":                {"t=1795299475,v1=" + deliverySignature, deliverySecret, append([]byte(" "), body...), []UnwrapOption{at(0)}, false},
		"another version":             {"t=1795299475,v0=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, false},
		"a part of the signature":     {"t=1795299475,v1=" + deliverySignature[:32], deliverySecret, body, []UnwrapOption{at(0)}, false},
		"an empty signature":          {"t=1795299475,v1=", deliverySecret, body, []UnwrapOption{at(0)}, false},
		"no time":                     {"v1=" + deliverySignature, deliverySecret, body, []UnwrapOption{at(0)}, false},
		"no header":                   {"", deliverySecret, body, []UnwrapOption{at(0)}, false},
	} {
		h := http.Header{}
		if tc.header != "" {
			h.Set("Service-Signature", tc.header)
		}
		event, err := Unwrap(tc.body, h, tc.secret, tc.options...)
		if tc.ok != (err == nil) || !tc.ok && (event != nil || !errors.Is(err, ErrSignature)) {
			t.Errorf("%s: %v, %v", name, event, err)
		}
	}
	if _, err := Unwrap(body, http.Header{}, ""); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty secret: %v", err)
	}
}

// TestTypedEvents checks that an event has the type of its event type, and that other types pass through.
func TestTypedEvents(t *testing.T) {
	t.Parallel()
	event, err := ParseEvent(delivery(t))
	e, ok := event.(*CustomerUpdatedEvent)
	if err != nil || !ok {
		t.Fatalf("%T %v", event, err)
	}
	if e.EventID() != "evt_01m802zyvve7d8rbwcpw77hzzk" || e.EventType() != "customer.updated" || e.EventTime() != time.Date(2026, 11, 21, 22, 17, 54, 299e6, time.UTC) ||
		*e.Data.Object.LastName != "Hopper" || e.Data.Object.Phone != nil || string(e.Data.PreviousAttributes["company"]) != "null" || *e.Request.IdempotencyKey != "rename-4711" {
		t.Errorf("%+v", e)
	}
	const document = `{"id":"evt_1","type":"unit.painted","created_at":"2030-01-01T00:00:00Z","data":{"object":{"color":"red"}}}`
	event, err = ParseEvent([]byte(document))
	u, ok := event.(*UnknownEvent)
	if err != nil || !ok || u.EventID() != "evt_1" || u.EventType() != "unit.painted" || u.EventTime().Year() != 2030 || string(u.Raw) != document {
		t.Errorf("%+v %v", event, err)
	}
	if back, err := json.Marshal(event); err != nil || string(back) != document {
		t.Errorf("%s %v", back, err)
	}
	for _, bad := range []string{"", "[]", "{}", `{"type":"booking.created","data":1}`} {
		if _, err := ParseEvent([]byte(bad)); err == nil {
			t.Errorf("%q is an event", bad)
		}
	}
	var export CustomerExport
	if err := json.Unmarshal([]byte(`{"events":[`+string(delivery(t))+`,`+document+`]}`), &export); err != nil || len(export.Events) != 2 || export.Events[0].EventType() != "customer.updated" {
		t.Errorf("%+v %v", export.Events, err)
	}
}

// TestEachTypeIsKnown checks that each event type of the contract has its own Go type.
func TestEachTypeIsKnown(t *testing.T) {
	t.Parallel()
	for _, name := range []EventType{
		EventTypeBookingCreated, EventTypeBookingUpdated, EventTypeBookingCancelled, EventTypeCustomerCreated, EventTypeCustomerUpdated, EventTypeLeadCreated,
		EventTypeLeadUpdated, EventTypeQuoteCreated, EventTypeQuoteAccepted, EventTypeInvoiceCreated, EventTypeInvoicePaid, EventTypePaymentSucceeded, EventTypePaymentFailed,
	} {
		event, err := ParseEvent([]byte(`{"id":"evt_1","type":"` + string(name) + `"}`))
		if _, unknown := event.(*UnknownEvent); unknown || err != nil || event.EventType() != string(name) || event.EventID() != "evt_1" || !event.EventTime().IsZero() {
			t.Errorf("%s: %T %v", name, event, err)
		}
	}
}
