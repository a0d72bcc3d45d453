package holdfast

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
)

// TestDoRepeatsAWriteWithOneKey checks that requests without types have the same behavior as the methods.
func TestDoRepeatsAWriteWithOneKey(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, cut, respond(201, booking))
	body, err := c.Do(t.Context(), Request{
		Method: "POST", Path: "/bookings", Query: url.Values{"expand": {"customer"}}, Body: json.RawMessage(`{"notes": "a"}`),
	})
	if err != nil || string(body) != booking {
		t.Fatalf("%s %v", body, err)
	}
	sent := s.requests()
	if all := strings.Fields(keys(sent)); len(all) != 2 || all[0] != all[1] {
		t.Errorf("the keys are %q", all)
	}
	for name, want := range map[string]string{"Prefer": "handling=strict", "Content-Type": "application/json", "Accept": "application/json"} {
		if got := sent[1].Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if sent[1].URL.RequestURI() != "/api/v1/bookings?expand=customer" || sent[1].body != `{"notes":"a"}` {
		t.Errorf("%s %s", sent[1].URL.RequestURI(), sent[1].body)
	}
}

// TestDoWithoutABody checks the headers of requests that are no writes with a body.
func TestDoWithoutABody(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "DELETE"} {
		c, s := newClient(t, respond(404, failure("booking_not_found")))
		_, err := c.Do(t.Context(), Request{Method: method, Path: "/bookings/bk_1"})
		sent := s.requests()
		if !errors.Is(err, ErrBookingNotFound) || keys(sent) != "" || sent[0].Header.Get("Content-Type") != "" || sent[0].body != "" {
			t.Errorf("%s: %v %v %q", method, err, sent[0].Header, sent[0].body)
		}
	}
	c, s := newClient(t)
	for _, path := range []string{"", "bookings", "/bookings?limit=1", "/bookings#a"} {
		if _, err := c.Do(t.Context(), Request{Method: "GET", Path: path}); err == nil || len(s.requests()) > 0 {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestOpenReadsLater checks that the response is not read before the caller does.
func TestOpenReadsLater(t *testing.T) {
	t.Parallel()
	c, s := newClient(t, respond(200, "id\nbk_1\n", "Content-Type", "text/csv"))
	d, err := c.Open(t.Context(), Request{Method: "GET", Path: "/bookings", Accept: "text/csv"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(d)
	if err = errors.Join(err, d.Close()); err != nil || string(text) != "id\nbk_1\n" || d.ContentType != "text/csv" || s.requests()[0].Header.Get("Accept") != "text/csv" {
		t.Errorf("%q %v %+v", text, err, d)
	}
}
