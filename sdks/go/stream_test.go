package holdfast

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// message returns a message of the stream.
func sent(id, eventType string) string {
	return "id: " + id + "\nevent: " + eventType + "\ndata: {\"id\":\"" + id + "\",\"type\":\"" + eventType + "\"}\n\n"
}

// endless is a stream that sends a text and then nothing.
func endless(text string) step {
	return func(r *http.Request) (*http.Response, error) {
		response, err := respond(200, "")(r)
		reader, writer := io.Pipe()
		go func() {
			_, _ = writer.Write([]byte(text))
			<-r.Context().Done()
			_ = writer.CloseWithError(r.Context().Err())
		}()
		response.Body = reader
		return response, err
	}
}

// broken is a stream that sends a text, and whose connection then fails.
func broken(text string) step {
	return func(r *http.Request) (*http.Response, error) {
		response, err := respond(200, "")(r)
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), brokenBody{}))
		return response, err
	}
}

const newest = `{"data":[{"id":"evt_0","type":"booking.created"}],"has_more":true,"next_cursor":"x"}`

// TestStream checks that a stream continues after the last event when a response ends, fails, or is silent, and that a temporary error
// does not end it.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, respond(200, newest),
			respond(200, "retry: 2000\n\n: still here\n\n"+sent("evt_1", "booking.created")+sent("evt_2", "new.type")),
			broken(sent("evt_3", "lead.created")+"id: evt_half\ndata: {"), respond(503, failure("unavailable"), "Retry-After", "4"), cut,
			endless(sent("evt_4", "quote.created")), respond(403, failure("insufficient_scope")))
		start := time.Now()
		var ids []string
		var last error
		for e, err := range c.Events.Stream(t.Context(), EventsStreamParams{Type: []EventType{EventTypeBookingCreated, EventTypeLeadCreated}}) {
			if last = err; err == nil {
				ids = append(ids, e.EventID())
			}
		}
		if strings.Join(ids, " ") != "evt_1 evt_2 evt_3 evt_4" || !errors.Is(last, ErrInsufficientScope) {
			t.Errorf("%v, then %v", ids, last)
		}
		var positions []string
		for _, r := range s.requests() {
			positions = append(positions, strings.TrimPrefix(r.URL.Path, "/api/v1")+"?"+r.URL.RawQuery+" "+r.Header.Get("Last-Event-ID"))
		}
		const types = "?type=booking.created%2Clead.created evt_"
		if got := strings.Join(positions, "; "); got != "/events?limit=1&type=booking.created%2Clead.created ; "+strings.Join([]string{
			"/events/stream" + types + "0", "/events/stream" + types + "2", "/events/stream" + types + "3", "/events/stream" + types + "3", "/events/stream" + types + "3", "/events/stream" + types + "4",
		}, "; ") {
			t.Error(got)
		}
		// 2 s after the end; 2 s after the failure; 4 s as the 503 says; 8 s after the second failure in a row... and a minute of silence.
		if d := time.Since(start); d < time.Minute+8*time.Second || d > 2*time.Minute {
			t.Errorf("it took %v", d)
		}
		if s.requests()[1].Header.Get("Accept") != "text/event-stream" {
			t.Error(s.requests()[1].Header)
		}
	})
}

// TestStreamOfANewTenant checks that no event is lost if there was none when the stream started: events that happen before the first
// connection, between two connections, and after a failure are read from the list.
func TestStreamOfANewTenant(t *testing.T) {
	t.Parallel()
	const none = `{"data":[],"has_more":false,"next_cursor":null}`
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, respond(200, none), respond(200, ": quiet\n\n"), respond(200, none), cut, respond(200, ""), respond(503, failure("unavailable")),
			respond(200, ""), respond(200, strings.ReplaceAll(newest, "evt_0", "evt_1")), respond(200, sent("evt_2", "booking.created")), respond(403, failure("insufficient_scope")))
		c.settings.retries = 0
		var ids []string
		var last error
		for e, err := range c.Events.Stream(t.Context(), EventsStreamParams{Type: []EventType{EventTypeBookingCreated}}) {
			if last = err; err == nil {
				ids = append(ids, e.EventID())
			}
		}
		if strings.Join(ids, " ") != "evt_1 evt_2" || !errors.Is(last, ErrInsufficientScope) {
			t.Errorf("%v, then %v", ids, last)
		}
		var positions []string
		for _, r := range s.requests() {
			positions = append(positions, strings.TrimPrefix(r.URL.Path, "/api/v1")+" "+r.URL.Query().Get("sort")+" "+r.URL.Query().Get("type")+" "+r.Header.Get("Last-Event-ID"))
		}
		const newestFirst, opened, oldestFirst = "/events  booking.created ", "/events/stream  booking.created ", "/events updated_at booking.created "
		want := []string{newestFirst, opened, oldestFirst, opened, opened, oldestFirst, opened, oldestFirst, opened + "evt_1", opened + "evt_2"}
		if strings.Join(positions, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s", strings.Join(positions, "\n"))
		}
	})
	synctest.Test(t, func(t *testing.T) { // a caller that leaves the loop with the first event
		c, s := newClient(t, respond(200, none), endless(""), respond(200, newest))
		for e, err := range c.Events.Stream(t.Context(), EventsStreamParams{}) {
			if err != nil || e.EventID() != "evt_0" {
				t.Errorf("%v %v", e, err)
			}
			break
		}
		if n := len(s.requests()); n != 3 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestStreamEnds checks what ends a stream: a break, the context, an error that stays, and the limit of the caller.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, endless(sent("evt_8", "booking.created")))
		for e, err := range c.Events.Stream(t.Context(), EventsStreamParams{LastEventID: "evt_7"}) {
			if err != nil || e.EventID() != "evt_8" {
				t.Errorf("%v %v", e, err)
			}
			break
		}
		if all := s.requests(); len(all) != 1 || all[0].Header.Get("Last-Event-ID") != "evt_7" {
			t.Errorf("%d requests", len(all))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, endless(sent("evt_8", "booking.created")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := 0
		var last error
		start := time.Now()
		for _, err := range c.Events.Stream(ctx, EventsStreamParams{LastEventID: "evt_7"}) {
			n, last = n+1, err
		}
		if n != 2 || !errors.Is(last, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("%d after %v: %v", n, time.Since(start), last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, cut)
		var last error
		for _, err := range c.Events.Stream(t.Context(), EventsStreamParams{LastEventID: "evt_7"}, WithMaxRetries(3)) {
			last = err
		}
		if !errors.Is(last, errCut) || len(s.requests()) != 4 {
			t.Errorf("%d requests: %v", len(s.requests()), last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, respond(200, "data: no JSON\n\n"))
		n := 0
		for _, err := range c.Events.Stream(t.Context(), EventsStreamParams{LastEventID: "evt_7"}) {
			if n++; err == nil {
				t.Error("no error")
			}
		}
		if n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

// TestStreamOfASlowReader checks that the time between two events counts only while the client waits for the platform.
func TestStreamOfASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, endless(sent("evt_1", "booking.created")+sent("evt_2", "booking.created")))
		for e, err := range c.Events.Stream(t.Context(), EventsStreamParams{LastEventID: "evt_0"}) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			if e.EventID() == "evt_2" {
				break
			}
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}
