package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/proto"
)

const testKey = "svc_test_trigger"

// fakeAPI returns responses that the contract allows, and records the requests.
type fakeAPI struct {
	url  string
	deny string // a path that returns an error

	mu       sync.Mutex
	requests []request
}

type request struct {
	line, key string
	body      map[string]any
}

func newAPI(t *testing.T) *fakeAPI {
	t.Helper()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	a := &fakeAPI{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.handle(t, c, w, r) }))
	t.Cleanup(server.Close)
	a.url = server.URL + "/api/v1"
	return a
}

func (a *fakeAPI) handle(t *testing.T, c *contract.Contract, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"The API key is not valid."}}`)
		return
	}
	if a.deny != "" && strings.HasSuffix(r.URL.Path, a.deny) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"message":"Too far.","errors":{"event_date":["Too far."]},"error":{"message":"Too far."}}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	op, values, _ := contracttest.Match(c, r.Method, path)
	if op == nil {
		t.Errorf("%s %s is not in the contract", r.Method, path)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if op.ID == "getTenant" {
		_, _ = io.WriteString(w, `{"currency":"EUR"}`)
		return
	}
	parsed, err := op.Parse(body)
	if err == nil {
		err = op.ValidateBody(parsed, true)
	}
	if err != nil {
		t.Errorf("%s: %s: %v", op.ID, body, err)
	}
	if r.Header.Get("Prefer") != "handling=strict" {
		t.Errorf("%s without Prefer", op.ID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	got := request{line: r.Method + " " + path, key: r.Header.Get("Idempotency-Key")}
	_ = json.Unmarshal(body, &got.body)
	a.requests = append(a.requests, got)
	id := strings.Join(values, "") // at most one
	if id == "" {
		id = fmt.Sprintf("%s_%d", strings.Trim(path, "/")[:2], len(a.requests))
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"mode":"test","client_secret":%q}`, id, id+"_secret")
}

func TestTriggerCreatesWhatCausesTheEvent(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		"customer.created":  {"POST /customers  cu_1"},
		"customer.updated":  {"POST /customers  cu_1", "PATCH /customers/cu_1  cu_1"},
		"booking.created":   {"POST /bookings  bo_1"},
		"booking.updated":   {"POST /bookings  bo_1", "PATCH /bookings/bo_1  bo_1"},
		"booking.cancelled": {"POST /bookings  bo_1", "POST /bookings/bo_1/cancel  bo_1"},
		"lead.created":      {"POST /leads  le_1"},
		"lead.updated":      {"POST /leads  le_1", "PATCH /leads/le_1  le_1"},
		"quote.created":     {"POST /customers  cu_1", "POST /quotes  qu_2"},
		"quote.accepted":    {"POST /customers  cu_1", "POST /quotes  qu_2", "POST /quotes/qu_2/send  qu_2", "POST /quotes/qu_2/accept  qu_2"},
		"invoice.created":   {"POST /customers  cu_1", "POST /invoices  in_2"},
		"invoice.paid": {
			"POST /customers  cu_1", "POST /invoices  in_2", "POST /invoices/in_2/open  in_2", "POST /invoices/in_2/record-payment  in_2",
		},
	} {
		a := newAPI(t)
		out, _, err := execute(t.Context(), triggerCommand(), "", kind, "--base-url", a.url+"/", "--key", testKey)
		if err != nil || out.String() != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
		keys := map[string]bool{}
		for i, r := range a.requests {
			if keys[r.key] = true; len(r.key) < 20 || !strings.HasPrefix(want[i], r.line+"  ") {
				t.Errorf("%s: %+v", kind, r)
			}
		}
		if len(keys) != len(want) {
			t.Errorf("%s: idempotency keys %v", kind, keys)
		}
		a.checkChange(t, kind)
	}
}

// checkChange checks that a booking is weeks ahead, and that a PATCH changes something.
func (a *fakeAPI) checkChange(t *testing.T, kind string) {
	t.Helper()
	if date, ok := a.requests[0].body["event_date"].(string); ok {
		day, err := time.Parse(time.DateOnly, date)
		if ahead := time.Until(day); err != nil || ahead < 14*24*time.Hour || ahead > 60*24*time.Hour {
			t.Errorf("%s: the date %s lies %v ahead", kind, date, ahead)
		}
	}
	if len(a.requests) < 2 || !strings.HasPrefix(a.requests[1].line, "PATCH") {
		return
	}
	for name, value := range a.requests[1].body {
		if a.requests[0].body[name] == value {
			t.Errorf("%s: PATCH leaves %s as it was", kind, name)
		}
	}
}

func TestTriggerRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	flags := []string{"--base-url", a.url, "--key", testKey}
	_, err := stepsTo("booking.made")
	for _, e := range proto.EventTypes {
		if err == nil || !strings.Contains(err.Error(), e.Name) {
			t.Errorf("%v does not name %s", err, e.Name)
		}
	}
	fails(t, triggerCommand(), `"booking.made" is not an event type`, append([]string{"booking.made"}, flags...)...)
	fails(t, triggerCommand(), "live mode keys are not allowed", "booking.created", "--base-url", a.url, "--key", "svc_live_abc")
	fails(t, triggerCommand(), "accepts 1 arg", flags...)
	a.deny = "/bookings"
	fails(t, triggerCommand(), "POST /bookings: Too far.", append([]string{"booking.updated"}, flags...)...)
	if len(a.requests) > 0 {
		t.Errorf("sent all the same: %+v", a.requests)
	}
}

// A payment is confirmed with a test card, like in a browser. A declined card is the expected result for payment.failed.
func TestTriggerPaysByCard(t *testing.T) {
	for kind, card := range map[string]string{"payment.succeeded": "pm_card_visa", "payment.failed": "pm_card_chargeDeclined"} {
		a := newAPI(t)
		var confirmed []string
		status := http.StatusOK
		stripe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			confirmed = append(confirmed, r.URL.Path, r.FormValue("key"), r.FormValue("client_secret"), r.FormValue("payment_method"))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"No such key."}}`)
		}))
		defer stripe.Close()
		t.Setenv("STRIPE_URL", stripe.URL+"/")
		t.Setenv("STRIPE_PUBLISHABLE_KEY", "pk_test_1")
		if kind == "payment.failed" {
			status = http.StatusPaymentRequired
		}
		flags := []string{kind, "--base-url", a.url, "--key", testKey}
		out, _, err := execute(t.Context(), triggerCommand(), "", flags...)
		want := "POST /bookings  bo_1\nPOST /payment-intents  pa_2\nPOST /v1/payment_intents/pa_2/confirm  pa_2\n"
		if err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
		if got := strings.Join(confirmed, " "); got != "/v1/payment_intents/pa_2/confirm pk_test_1 pa_2_secret "+card {
			t.Errorf("%s: confirmed %s", kind, got)
		}
		if a.requests[1].body["booking_id"] != "bo_1" {
			t.Errorf("%s: %+v", kind, a.requests[1])
		}
		status = http.StatusUnauthorized
		if _, _, err := execute(t.Context(), triggerCommand(), "", flags...); err == nil || !strings.HasSuffix(err.Error(), "401 Unauthorized No such key.") {
			t.Errorf("%s: %v", kind, err)
		}
		sent := len(a.requests)
		for _, key := range []string{"", "pk_live_1"} {
			t.Setenv("STRIPE_PUBLISHABLE_KEY", key)
			fails(t, triggerCommand(), "STRIPE_PUBLISHABLE_KEY", flags...)
		}
		if len(a.requests) != sent {
			t.Errorf("%s: something was created without a key to pay it", kind)
		}
	}
}

// Each event type has a trigger.
func TestEveryEventTypeHasATrigger(t *testing.T) {
	t.Parallel()
	for _, e := range proto.EventTypes {
		if len(triggers[e.Name]) == 0 {
			t.Errorf("nothing causes %s", e.Name)
		}
	}
	if len(triggers) != len(proto.EventTypes) {
		t.Errorf("%d triggers, %d event types", len(triggers), len(proto.EventTypes))
	}
}
