package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/sdks/cli/internal/operations"
	holdfast "holdfast.dev/sdks/go"
)

// mailbox is a receiver that verifies and stores deliveries.
type mailbox struct {
	url, secret string

	mu     sync.Mutex
	events []holdfast.Event
	header http.Header
	body   string
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{secret: "whsec_dGhpcyBpcyBhIHNlY3JldCBvZiB0aGUgdGVzdHM="}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := holdfast.Unwrap(body, r.Header, m.secret)
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.events, m.header, m.body = append(m.events, event), r.Header, string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// ids returns the IDs of the events of a type.
func (m *mailbox) ids(kind string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, e := range m.events {
		if e.EventType() == kind {
			all = append(all, e.EventID())
		}
	}
	return all
}

// start starts a command and returns what it writes.
func (c tool) start(args ...string) (*exec.Cmd, *screen) {
	c.t.Helper()
	cmd := c.command(args...)
	said := &screen{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, said
}

// TestListenAndTrigger triggers each type of event while listen forwards them, and stops it with an interrupt.
func TestListenAndTrigger(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	c := withKey(t, shared.Env["DEMO_TEST_KEY"]).with("STRIPE_URL="+shared.Env["STRIPE_URL"], "STRIPE_PUBLISHABLE_KEY="+shared.Env["STRIPE_PUBLISHABLE_KEY"])
	listen, said := c.start("listen", "--forward-to", strings.TrimPrefix(m.url, "http://"), "--secret", m.secret)
	await(t.Context(), t, "the stream", func() bool { return strings.Contains(said.String(), "listening for events") })
	for _, kind := range operations.EventTypes {
		before := len(m.ids(kind))
		c.ok("trigger", kind)
		await(t.Context(), t, kind, func() bool { return len(m.ids(kind)) > before })
	}
	if err := listen.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := listen.Wait(); err != nil {
		t.Errorf("listen: %v\n%s", err, said)
	}
	if !regexp.MustCompile(`(?m)^\S+Z  invoice\.paid +evt_\w+  204  \d+ ms$`).MatchString(said.String()) {
		t.Errorf("%s", said)
	}
}

// TestResendAndVerify sends an event again, to a receiver and to an endpoint, and verifies what arrived.
func TestResendAndVerify(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	c := withKey(t, shared.Key)
	endpoint := object(t, c.ok("webhook-endpoints", "create", "--url", m.url, "--event-types", "customer.created"))
	m.mu.Lock()
	m.secret, _ = endpoint["secret"].(string)
	m.mu.Unlock()
	id, _ := endpoint["id"].(string)
	customer := c.ok("customers", "create", "--first-name", "Again", "--email", "again@example.com", "--jq", ".id")
	event := ""
	await(t.Context(), t, "the event", func() bool {
		event = c.ok("events", "list", "--object-id", customer, "--jq", ".data[].id")
		return event != ""
	})
	count := func() (n int) {
		for _, one := range m.ids("customer.created") {
			if one == event {
				n++
			}
		}
		return n
	}
	await(t.Context(), t, "the delivery", func() bool { return count() == 1 })
	if got := c.ok("resend", event, "--endpoint", id); !strings.Contains(got, event+"  whd_") {
		t.Errorf("%s", got)
	}
	await(t.Context(), t, "the second delivery", func() bool { return count() >= 2 })
	if got := c.ok("events", "resend", event, "--endpoint-id", id, "--jq", ".event_id"); strings.TrimSpace(got) != event {
		t.Errorf("%s", got)
	}
	await(t.Context(), t, "the third delivery", func() bool { return count() >= 3 })
	before := count()
	if got := c.ok("resend", event, "--forward-to", m.url, "--secret", m.secret); !strings.Contains(got, "  204  ") || count() <= before {
		t.Errorf("%s", got)
	}
	// The endpoint has a secret of its own and a receiver of its own: until it is disabled, it receives what other tests book.
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	disabled := c.ok("webhook-endpoints", "create", "--url", other.URL, "--event-types", "booking.created", "--jq", ".id")
	c.ok("webhook-endpoints", "update", disabled, "--status", "disabled")
	c.fails(3, []string{"resend", event, "--endpoint", disabled}, "endpoint_id", "disabled")
	c.fails(2, []string{"resend", event}, "endpoint", "forward-to")

	file := filepath.Join(t.TempDir(), "body.json")
	m.mu.Lock()
	body, signature := m.body, m.header.Get("Service-Signature")
	m.mu.Unlock()
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.ok("verify", "--secret", m.secret, "--signature", signature, "--file", file); !strings.HasPrefix(got, "valid: signed at ") {
		t.Errorf("%s", got)
	}
	c.fails(1, []string{"verify", "--secret", "whsec_x", "--signature", signature, "--file", file}, "no signature matches")
}

// TestEventStream checks that the stream of events continues after the last event, and writes one event per line.
func TestEventStream(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Env["OTHER_TEST_KEY"])
	customer := c.ok("customers", "create", "--first-name", "Stream", "--email", "stream@example.com", "--jq", ".id")
	event := ""
	await(t.Context(), t, "the event", func() bool {
		event = c.ok("events", "list", "--object-id", customer, "--jq", ".data[].id")
		return event != ""
	})
	stream, said := c.start("events", "stream", "--last-event-id", event, "--type", "customer.updated", "--jq", `.data.object | "\(.id) \(.first_name)"`)
	c.ok("customers", "update", customer, "--first-name", "Changed")
	await(t.Context(), t, "the event of the stream", func() bool { return said.String() == customer+" Changed\n" })
	if err := stream.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := stream.Wait(); stream.ProcessState.ExitCode() != 130 {
		t.Errorf("%v %s", err, said)
	}
}
