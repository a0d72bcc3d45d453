// Package followtest provides a fake platform that serves /events and /events/stream like the real one, and fails on demand.
package followtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Key is the API key that a Platform accepts.
const Key = "svc_test_followtest"

// Platform stores events and serves them at URL.
type Platform struct {
	URL string
	// Before is called with each request before it is handled.
	Before func(r *http.Request)

	mu      sync.Mutex
	events  []event
	more    chan struct{} // closed by the next event
	streams []Stream
	resumed []string
	closed  chan struct{}
}

// Stream specifies the response to one call of /events/stream.
type Stream struct {
	Status      int    // instead of 200
	Body        string // with Status, or with ContentType
	RetryAfter  string
	ContentType string // instead of text/event-stream
	Cut         int    // the number of bytes of events after which it aborts; 0 means never
	End         bool   // ends after the existing events
	All         bool   // starts with the first event and ignores Last-Event-ID
	Silent      bool   // sends nothing and does not end
}

// event is an event of the platform, with its body.
type event struct{ id, kind, body string }

// New starts a platform without events. streams are the responses to the first calls. Later calls do not fail.
func New(t testing.TB, streams ...Stream) *Platform {
	t.Helper()
	p := &Platform{more: make(chan struct{}), closed: make(chan struct{}), streams: streams}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(p.closed) }) // runs first, because the server's Close waits for open streams
	p.URL = server.URL + "/api/v1"
	return p
}

// Add adds an event and returns its id.
func (p *Platform) Add(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := event{id: fmt.Sprintf("evt_%04d", len(p.events)+1), kind: kind}
	e.body = fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"note":"<&> \u00e9 é 🛶"}`, e.id, kind)
	p.events = append(p.events, e)
	close(p.more)
	p.more = make(chan struct{})
	return e.id
}

// Bodies returns the bodies of the events in the form in which they are delivered.
func (p *Platform) Bodies() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, e := range p.events {
		out = append(out, e.body)
	}
	return out
}

// LastEventIDs returns the values of Last-Event-ID of all streams.
func (p *Platform) LastEventIDs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.resumed)
}

// ServeHTTP implements http.Handler.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.Before != nil {
		p.Before(r)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Key:
		refuse(w, http.StatusUnauthorized, `{"error":{"code":"invalid_credential","message":"The API key is not valid."}}`)
	case r.URL.Path == "/api/v1/events":
		p.list(w, r)
	case r.URL.Path == "/api/v1/events/stream":
		p.stream(w, r)
	default:
		refuse(w, http.StatusNotFound, `{"error":{"code":"not_found","message":"This path does not exist."}}`)
	}
}

// refuse responds with an error status.
func refuse(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// list responds with pages of events, newest first. The cursor is the number of events before the page.
func (p *Platform) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	response := struct {
		Data       []json.RawMessage `json:"data"`
		HasMore    bool              `json:"has_more"`
		NextCursor *string           `json:"next_cursor"`
	}{Data: []json.RawMessage{}}
	all, _, _ := p.since(0, r)
	slices.Reverse(all)
	all = all[from:]
	if limit = min(limit, 2); len(all) > limit { // small pages, so that there are several pages
		next := strconv.Itoa(from + limit)
		all, response.HasMore, response.NextCursor = all[:limit], true, &next
	}
	for _, e := range all {
		response.Data = append(response.Data, json.RawMessage(e.body))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // the events' own bytes
	_ = enc.Encode(response)
}

// since returns the events of some types from a position, the position after them, and a channel that is closed when there are
// more.
func (p *Platform) since(from int, r *http.Request) (out []event, next int, more chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events[from:] {
		if types := r.URL.Query().Get("type"); types == "" || slices.Contains(strings.Split(types, ","), e.kind) {
			out = append(out, e)
		}
	}
	return out, len(p.events), p.more
}

// begin returns the response to the next stream, and the position of its Last-Event-ID.
func (p *Platform) begin(r *http.Request) (s Stream, from int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := r.Header.Get("Last-Event-ID")
	p.resumed = append(p.resumed, last)
	if len(p.streams) > 0 {
		s, p.streams = p.streams[0], p.streams[1:]
	}
	from = len(p.events)
	if last != "" {
		from = 1 + slices.IndexFunc(p.events, func(e event) bool { return e.id == last })
	}
	if s.All {
		from = 0
	}
	return s, from
}

// stream handles /events/stream.
func (p *Platform) stream(w http.ResponseWriter, r *http.Request) {
	s, from := p.begin(r)
	if s.RetryAfter != "" {
		w.Header().Set("Retry-After", s.RetryAfter)
	}
	if s.Status != 0 {
		refuse(w, s.Status, s.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if s.ContentType != "" {
		w.Header().Set("Content-Type", s.ContentType)
	}
	_, _ = w.Write([]byte(s.Body))
	left := s.Cut
	for flush := http.NewResponseController(w); ; {
		events, next, more := p.since(from, r)
		from = next
		if !s.Silent {
			send(w, events, s, &left)
		}
		_ = flush.Flush()
		if s.End {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
	}
}

// send writes a heartbeat and the events, and aborts where the Stream specifies it.
func send(w http.ResponseWriter, events []event, s Stream, left *int) {
	_, _ = w.Write([]byte(": alive\n\n"))
	for _, e := range events {
		text := fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.id, e.kind, e.body)
		if s.Cut > 0 && len(text) > *left {
			_, _ = w.Write([]byte(text[:*left]))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		*left -= len(text)
		_, _ = w.Write([]byte(text))
	}
}
