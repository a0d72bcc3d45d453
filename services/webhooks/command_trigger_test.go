package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

const testKey = "svc_test_trigger"

// fakeAPI gives answers that the contract allows, and keeps the requests.
type fakeAPI struct {
	url  string
	deny string // a path that is refused

	mu       sync.Mutex
	requests []request
}

type request struct {
	line, key string
	body      map[string]any
}

func newAPI(t *testing.T) *fakeAPI {
	t.Helper()
	c, err := contract.Load(proto.OpenAPI)
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
	op, params, _ := c.Match(r.Method, path)
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
	id := params.Get("id")
	if id == "" {
		id = fmt.Sprintf("%s_%d", strings.Trim(path, "/")[:2], len(a.requests))
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"mode":"test"}`, id)
}

func TestTriggerMakesWhatCausesTheEvent(t *testing.T) {
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
	for _, e := range proto.EventTypes {
		if _, can := triggers[e.Name]; can {
			continue
		}
		fails(t, triggerCommand(), "nothing in the API causes "+e.Name+" yet; POST /webhook-endpoints/{id}/test sends a sample", append([]string{e.Name}, flags...)...)
	}
	_, err := stepsTo("booking.made")
	for _, e := range proto.EventTypes {
		if err == nil || !strings.Contains(err.Error(), e.Name) {
			t.Errorf("%v does not name %s", err, e.Name)
		}
	}
	fails(t, triggerCommand(), `"booking.made" is no event type`, append([]string{"booking.made"}, flags...)...)
	fails(t, triggerCommand(), "key of live mode", "booking.created", "--base-url", a.url, "--key", "svc_live_abc")
	fails(t, triggerCommand(), "accepts 1 arg", flags...)
	a.deny = "/bookings"
	fails(t, triggerCommand(), "POST /bookings: Too far.", append([]string{"booking.updated"}, flags...)...)
	if len(a.requests) > 0 {
		t.Errorf("made all the same: %+v", a.requests)
	}
}

// Each resource of the contract must have its triggers.
func TestTriggersKeepUpWithTheContract(t *testing.T) {
	t.Parallel()
	c, err := contract.Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var resources []string
	for _, op := range c.Operations() {
		if m := regexp.MustCompile(`^create(Lead|Quote|Invoice|Payment|Booking|Customer)`).FindStringSubmatch(op.ID); m != nil {
			resources = append(resources, strings.ToLower(m[1]))
		}
	}
	for _, e := range proto.EventTypes {
		resource, _, _ := strings.Cut(e.Name, ".")
		_, can := triggers[e.Name]
		if built := slices.Contains(resources, resource); built != can {
			t.Errorf("%s: the contract creates its resource is %v, and trigger causes it is %v", e.Name, built, can)
		}
	}
}
