package follow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/follow"
	"holdfast.dev/sdks/cli/internal/follow/followtest"
)

// follower is a Follower that runs, with its events, notices and waits.
type follower struct {
	*follow.Follower
	t       *testing.T
	mu      sync.Mutex
	events  []follow.Event
	waits   []time.Duration
	notices []string
	end     chan error
	stop    func()
}

// newClient returns a client of a platform.
func newClient(t *testing.T, address, key string) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(holdfast.WithBaseURL(address), holdfast.WithAPIKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// message returns the message of an error of the API, or the whole text.
func message(err error) string {
	if refused := (*holdfast.Error)(nil); errors.As(err, &refused) {
		return refused.Message
	}
	return fmt.Sprint(err)
}

// start starts a Follower that does not sleep, and waits until it reads or returns.
func start(t *testing.T, p *followtest.Platform, types ...string) *follower {
	t.Helper()
	return startAs(t, p, followtest.Key, &follow.Follower{Types: types})
}

func startAs(t *testing.T, p *followtest.Platform, key string, bare *follow.Follower) *follower {
	t.Helper()
	client := newClient(t, p.URL, key)
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{Follower: bare, t: t, end: make(chan error, 1), stop: stop}
	started := make(chan struct{})
	f.Client, f.Start = client, func() { close(started) }
	f.Notice = func(err error, _ time.Duration) { f.note(func() { f.notices = append(f.notices, message(err)) }) }
	f.Sleep = func(_ context.Context, d time.Duration) { f.note(func() { f.waits = append(f.waits, d) }) }
	go func() {
		f.end <- f.Follow(ctx, func(e follow.Event) { f.note(func() { f.events = append(f.events, e) }) })
	}()
	select {
	case <-started:
	case err := <-f.end:
		f.end <- err
	case <-time.After(time.Minute):
		t.Fatal("it does not start")
	}
	return f
}

func (f *follower) note(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

// got waits until the Follower has n events, stops it and returns the ids of all its events.
func (f *follower) got(n int) []string {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		enough := false
		if f.note(func() { enough = len(f.events) >= n }); enough {
			break
		}
	}
	f.stop()
	if err := f.returned(); err != nil {
		f.t.Errorf("it returned %v", err)
	}
	var out []string
	for _, e := range f.events {
		out = append(out, e.ID)
	}
	return out
}

func (f *follower) returned() error {
	f.t.Helper()
	select {
	case err := <-f.end:
		return err
	case <-time.After(time.Minute):
		f.t.Fatal("it does not end")
		return nil
	}
}

func (f *follower) want(ids ...string) {
	f.t.Helper()
	if got := f.got(len(ids)); !slices.Equal(got, ids) {
		f.t.Errorf("events %q, want %q", got, ids)
	}
}

func TestFollowReceivesEventsAsTheyHappen(t *testing.T) {
	t.Parallel()
	p := followtest.New(t)
	p.Add("booking.created") // before the client listened
	f := start(t, p)
	f.want(p.Add("booking.created"), p.Add("customer.updated"), p.Add("booking.cancelled"))
	bodies := p.Bodies()
	for i, kind := range []string{"booking.created", "customer.updated", "booking.cancelled"} {
		if e := f.events[i]; e.Type != kind || string(e.Body) != bodies[i+1] {
			t.Errorf("%s with %s, want %s with %s", e.Type, e.Body, kind, bodies[i+1])
		}
	}
	if len(f.notices) > 0 {
		t.Errorf("notices %q", f.notices)
	}
}

func TestFollowFiltersByType(t *testing.T) {
	t.Parallel()
	p := followtest.New(t)
	f := start(t, p, "booking.created", "customer.updated")
	first := p.Add("booking.created")
	p.Add("booking.cancelled")
	f.want(first, p.Add("customer.updated"))
}

// The stream ends at each byte of the second of three events in turn. Each event is passed on once.
func TestFollowResumesAfterACut(t *testing.T) {
	t.Parallel()
	one := len("id: evt_0002\nevent: booking.created\ndata: \n\n")
	p := followtest.New(t)
	p.Add("booking.created")
	one += len(p.Bodies()[0])
	for _, at := range []int{1, 8, 13, 30, one / 2, one - 2, one - 1, one} {
		p := followtest.New(t, followtest.Stream{Cut: one + at}, followtest.Stream{Cut: at}, followtest.Stream{Cut: one + at})
		p.Add("booking.created")
		f := start(t, p)
		ids := []string{p.Add("booking.created"), p.Add("booking.created"), p.Add("booking.created")}
		f.want(ids...)
		for i, last := range p.LastEventIDs() {
			if i > 0 && at < one && !slices.Contains([]string{"evt_0002", "evt_0003"}, last) {
				t.Errorf("cut at %d: stream %d was requested behind %q", at, i+1, last)
			}
		}
		if len(f.notices) == 0 || !strings.Contains(f.notices[0], "the stream was cut off") {
			t.Errorf("cut at %d: notices %q", at, f.notices)
		}
	}
}

func TestFollowReceivesEachEventOnce(t *testing.T) {
	t.Parallel()
	p := followtest.New(t, followtest.Stream{End: true, All: true}, followtest.Stream{Cut: 300, All: true}, followtest.Stream{End: true, All: true}, followtest.Stream{All: true})
	f := start(t, p)
	f.want(p.Add("booking.created"), p.Add("booking.updated"), p.Add("booking.updated"))
}

// There is no event at the start. The first one occurs while no stream is open: between two streams, or between the first request
// and the first stream.
func TestFollowMissesNothingOfAQuietTenant(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]int{"before the first stream": 1, "between two": 2, "later": 3} {
		p := followtest.New(t, followtest.Stream{End: true}, followtest.Stream{End: true}, followtest.Stream{End: true})
		var ids []string
		streams := 0
		p.Before = func(r *http.Request) {
			if streams += strings.Count(r.URL.Path, "/stream"); strings.HasSuffix(r.URL.Path, "/stream") && streams == when {
				ids = append(ids, p.Add("customer.created"), p.Add("customer.updated"), p.Add("customer.updated"))
			}
		}
		f := start(t, p)
		for len(p.LastEventIDs()) < 4 { // enough streams for each case
			time.Sleep(time.Millisecond)
		}
		last := p.Add("customer.updated")
		if got := f.got(4); !slices.Equal(got, append(ids, last)) || len(ids) != 3 {
			t.Errorf("%s: events %q, want %q and %q", name, got, ids, last)
		}
		if heard := strings.Join(p.LastEventIDs(), ""); heard != "" {
			t.Errorf("%s: a stream was requested behind %s, which only the list has named", name, heard)
		}
		if len(f.notices) > 0 {
			t.Errorf("%s: a notice for a stream that ends: %q", name, f.notices)
		}
	}
}

func TestFollowStopsWhereItIsRefused(t *testing.T) {
	t.Parallel()
	envelope := `{"error":{"type":"x","code":"c","message":"Needs the scope read:leads.","request_id":"req_1"}}`
	for name, tc := range map[string]struct {
		stream followtest.Stream
		want   string
	}{
		"403":          {followtest.Stream{Status: 403, Body: envelope}, "Needs the scope read:leads."},
		"422":          {followtest.Stream{Status: 422, Body: envelope}, "Needs the scope read:leads."},
		"404, no JSON": {followtest.Stream{Status: 404, Body: "<html>"}, "Not Found"},
		"redirect":     {followtest.Stream{Status: 302}, "Found"},
		"a page":       {followtest.Stream{ContentType: "text/html", Body: "<html>"}, "the response is not an event stream: check the address of the platform"},
		"endless line": {followtest.Stream{Body: strings.Repeat("x", bound+10)}, follow.ErrTooLong.Error()},
	} {
		f := start(t, followtest.New(t, tc.stream, tc.stream))
		if err := f.returned(); message(err) != tc.want || len(f.waits) > 0 {
			t.Errorf("%s: %v after %v, want %s", name, err, f.waits, tc.want)
		}
	}
	f := startAs(t, followtest.New(t), "svc_test_other", &follow.Follower{})
	if err := f.returned(); message(err) != "The API key is not valid." {
		t.Errorf("401: %v", err)
	}
}

// The wait is 1 s and doubles up to 30 s. Retry-After can make it longer, and a stream resets it.
func TestFollowBacksOff(t *testing.T) {
	t.Parallel()
	away := followtest.Stream{Status: 503, Body: `{"error":{"code":"unavailable","message":"Not now."}}`}
	limited := followtest.Stream{Status: 429, RetryAfter: "45"}
	p := followtest.New(t, away, away, away, away, away, away, away, limited, followtest.Stream{End: true}, away)
	p.Add("booking.created")
	f := start(t, p)
	for len(p.LastEventIDs()) < 11 {
		time.Sleep(time.Millisecond)
	}
	f.want(p.Add("booking.created"))
	want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 45, 1, 2}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(f.waits, want) || len(f.notices) != 9 || f.notices[0] != "Not now." {
		t.Errorf("waits %v, notices %q", f.waits, f.notices)
	}
}

func TestFollowLeavesASilentStream(t *testing.T) {
	t.Parallel()
	p := followtest.New(t, followtest.Stream{Silent: true})
	f := startAs(t, p, followtest.Key, &follow.Follower{Idle: 50 * time.Millisecond})
	f.want(p.Add("booking.created"))
	if !slices.Contains(f.notices, "the stream sent nothing for too long") {
		t.Errorf("notices %q", f.notices)
	}
}

// The Follower retries if the platform does not respond.
func TestFollowOutlivesTheNetwork(t *testing.T) {
	t.Parallel()
	client := newClient(t, "http://127.0.0.1:1/api/v1", "svc_test_x")
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	f := &follow.Follower{
		Client: client, Notice: func(error, time.Duration) {},
		Sleep: func(context.Context, time.Duration) {
			if n++; n == 3 {
				stop()
			}
		},
	}
	if err := f.Follow(ctx, func(follow.Event) { t.Error("an event") }); err != nil || n != 3 {
		t.Errorf("%v after %d waits", err, n)
	}
}

// TestFollowContinuesAfterAnEvent checks that the user can name the event after which to start.
func TestFollowContinuesAfterAnEvent(t *testing.T) {
	t.Parallel()
	p := followtest.New(t)
	first, second := p.Add("booking.created"), p.Add("booking.updated")
	f := startAs(t, p, followtest.Key, &follow.Follower{After: first})
	f.want(second, p.Add("booking.cancelled"))
}
