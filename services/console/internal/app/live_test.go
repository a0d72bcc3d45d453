package app_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxWait is how long a test waits for an expected event.
const maxWait = 10 * time.Second

var secret, _ = hex.DecodeString(strings.Repeat("ab", 32))

// upstream is the stream of events of one connection.
type upstream struct {
	who    caller.Caller
	last   string // Last-Event-ID
	events chan string
	closed chan struct{} // closed when the console disconnects
}

// streams simulates webhooks. It records all opened connections.
type streams struct {
	t    *testing.T
	live *app.Live

	mu  sync.Mutex
	all []*upstream // guarded by mu
}

func newStreams(t *testing.T, most int) *streams {
	t.Helper()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	operations, err := domain.NewOperations(c, proto.OpenAPI, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &streams{t: t}
	verifier := &caller.Verifier{Self: "webhooks", Keys: caller.Keys{"console": {{ID: "k1", Secret: secret}}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil || r.URL.Path != "/api/v1/events/stream" {
			t.Errorf("%s: %v", r.URL, err)
		}
		s.serve(w, r, &upstream{who: who, last: r.Header.Get("Last-Event-ID"), events: make(chan string), closed: make(chan struct{})})
	}))
	transport := &http.Transport{}
	client := &peer.Client{Target: "webhooks", BaseURL: server.URL, Signer: &caller.Signer{From: "console", Keys: caller.Keys{"webhooks": {{ID: "k1", Secret: secret}}}}, HTTP: &http.Client{Transport: transport}}
	s.live = app.NewLive(&peers.Services{Operations: operations, Clients: map[string]*peer.Client{"webhooks": client}}, most)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return s
}

func (s *streams) serve(w http.ResponseWriter, r *http.Request, u *upstream) {
	s.mu.Lock()
	s.all = append(s.all, u)
	s.mu.Unlock()
	defer close(u.closed)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text, more := <-u.events:
			if !more {
				return
			}
			_, _ = fmt.Fprint(w, text)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// opened waits until that many connections were opened and returns them.
func (s *streams) opened(n int) []*upstream {
	s.t.Helper()
	for end := time.Now().Add(maxWait); ; {
		s.mu.Lock()
		all := slices.Clone(s.all)
		s.mu.Unlock()
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d streams, want %d", len(all), n)
		}
		<-time.After(time.Millisecond)
	}
}

// send sends an event to the console.
func (u *upstream) send(t *testing.T, eventType, id string) {
	t.Helper()
	select {
	case u.events <- "event: " + eventType + "\nid: " + id + "\ndata: {}\n\n":
	case <-u.closed:
		t.Fatal("the stream is closed")
	case <-time.After(maxWait):
		t.Fatal("the stream takes nothing")
	}
}

// page is an open page of a tenant and mode.
func (s *streams) page(tenant ids.Tenant, mode caller.Mode, scopes ...string) (changes <-chan struct{}, end func()) {
	s.t.Helper()
	changes, end, err := s.live.Subscribe(caller.With(context.Background(), caller.Caller{Tenant: tenant, Mode: mode, Kind: "operator", Scopes: scopes}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(end)
	return changes, end
}

func notified(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(maxWait):
		t.Fatal("the page is not notified")
	}
}

func (s *streams) notNotified(changes <-chan struct{}) {
	s.t.Helper()
	s.live.Open() // waits until all pages have been notified of the last event
	select {
	case <-changes:
		s.t.Error("the page is notified")
	default:
	}
}

func gone(t *testing.T, u *upstream) {
	t.Helper()
	select {
	case <-u.closed:
	case <-time.After(maxWait):
		t.Fatal("the stream stays open")
	}
}

// TestOneStreamForAllPages checks that one stream reads the events of a tenant and mode, regardless of how many pages show it,
// and that it is closed with the last page.
func TestOneStreamForAllPages(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 1000)
	one, two := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	var pages []<-chan struct{}
	var ends []func()
	for range 100 {
		c, end := s.page(one, caller.Test, "read:bookings")
		pages, ends = append(pages, c), append(ends, end)
	}
	otherMode, _ := s.page(one, caller.Live, "read:bookings")
	otherTenant, _ := s.page(two, caller.Test, "read:bookings")
	all := s.opened(3)
	var first *upstream
	for _, u := range all {
		if u.who.Tenant == one && u.who.Mode == caller.Test {
			first = u
		}
	}
	if first == nil || first.who.Credential != "svc:console" || first.last != "" {
		t.Fatalf("%+v", first)
	}
	first.send(t, "booking.created", "evt_1")
	for _, c := range pages {
		notified(t, c)
	}
	s.notNotified(otherMode)
	s.notNotified(otherTenant)
	for _, end := range ends[1:] {
		end()
		end() // a second call has no effect
	}
	first.send(t, "booking.created", "evt_2")
	notified(t, pages[0])
	if n := s.live.Open(); n != 3 {
		t.Errorf("%d pages are open, want 3", n)
	}
	ends[0]()
	gone(t, first)
	if n := len(s.opened(3)); n != 3 {
		t.Errorf("%d streams", n)
	}
}

// TestPagesAreNotifiedByScope checks that a page is notified only of events that its reader can read.
func TestPagesAreNotifiedByScope(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 10)
	tenant := ids.New[ids.TenantPrefix]()
	bookings, _ := s.page(tenant, caller.Test, "read:bookings")
	leads, _ := s.page(tenant, caller.Test, "read:leads")
	nothing, _ := s.page(tenant, caller.Test)
	u := s.opened(1)[0]
	u.send(t, "lead.created", "evt_1")
	notified(t, leads)
	s.notNotified(bookings)
	u.send(t, "unknown.type", "evt_2")
	u.send(t, "booking.created", "evt_3")
	notified(t, bookings)
	s.notNotified(leads)
	s.notNotified(nothing)
}

// TestPagesAreBounded checks that a process updates at most the allowed number of pages, and that closing one makes room.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 2)
	tenant := ids.New[ids.TenantPrefix]()
	_, end := s.page(tenant, caller.Test)
	s.page(tenant, caller.Live)
	who := caller.With(context.Background(), caller.Caller{Tenant: tenant, Mode: caller.Test})
	if _, _, err := s.live.Subscribe(who); !errors.Is(err, app.ErrTooManyPages) || s.live.Open() != 2 {
		t.Errorf("%v with %d pages", err, s.live.Open())
	}
	end()
	end()
	s.page(tenant, caller.Test)
	if _, _, err := s.live.Subscribe(who); !errors.Is(err, app.ErrTooManyPages) {
		t.Errorf("a page that ends twice makes room for two: %v", err)
	}
}

// TestStreamResumesAfterDisconnect checks that an interrupted stream is reopened after the last event that arrived.
func TestStreamResumesAfterDisconnect(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 10)
	page, _ := s.page(ids.New[ids.TenantPrefix](), caller.Test, "read:bookings")
	first := s.opened(1)[0]
	first.send(t, "lead.created", "evt_1") // the position also advances with an event that no page reads
	first.send(t, "booking.created", "evt_2")
	notified(t, page)
	close(first.events)
	second := s.opened(2)[1]
	if second.last != "evt_2" {
		t.Errorf("it goes on after %q", second.last)
	}
	second.send(t, "booking.updated", "evt_3")
	notified(t, page)
}

// TestSlowPageDoesNotBlockOthers checks that a page that does not read gets one notification and does not delay the others.
func TestSlowPageDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 10)
	tenant := ids.New[ids.TenantPrefix]()
	slow, _ := s.page(tenant, caller.Test, "read:bookings")
	quick, _ := s.page(tenant, caller.Test, "read:bookings")
	u := s.opened(1)[0]
	for i := range 200 {
		u.send(t, "booking.created", fmt.Sprintf("evt_%d", i))
		notified(t, quick)
	}
	notified(t, slow)
	s.notNotified(slow)
}

// TestPagesOpenAndCloseConcurrently checks that pages that open and close in parallel leave no stream behind.
func TestPagesOpenAndCloseConcurrently(t *testing.T) {
	t.Parallel()
	s := newStreams(t, 1000)
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			for range 20 {
				_, end, err := s.live.Subscribe(caller.With(context.Background(), caller.Caller{Tenant: tenants[i%2], Mode: caller.Test}))
				if err != nil {
					t.Error(err)
					return
				}
				end()
			}
		})
	}
	wait.Wait()
	if n := s.live.Open(); n != 0 {
		t.Errorf("%d pages are left", n)
	}
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for _, u := range all {
		gone(t, u)
	}
}
