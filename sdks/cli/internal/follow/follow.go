// Package follow reads the events of a tenant as they happen, with the bytes that deliveries have.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// The times and sizes of a Follower.
const (
	firstWait   = time.Second
	maxWait     = 30 * time.Second
	defaultIdle = 90 * time.Second
	longestWait = 10 * time.Minute // that the platform can ask for
	maxSeen     = 10_000           // number of ids that are stored to recognize repeated events
)

// The errors that end a stream.
var (
	errSilent   = errors.New("the stream sent nothing for too long")
	errCut      = errors.New("the stream was cut off")
	errNoStream = errors.New("the response is not an event stream: check the address of the platform")
)

// Event is one of the platform's events.
type Event struct {
	ID, Type string
	Body     []byte // the same body as in a delivery
}

// Follower reads the events of a client's tenant and mode as they happen.
type Follower struct {
	Client *holdfast.Client
	Types  []string                             // the event types; empty means all
	After  string                               // the id of the event after which to start; "" means from now on
	Start  func()                               // called once, when no later event can be missed
	Notice func(err error, wait time.Duration)  // called with an error and the time until the next attempt
	Sleep  func(context.Context, time.Duration) // replaces waiting in tests; nil: wait
	Idle   time.Duration                        // the time without a byte after which a stream is abandoned; 0 means 90 s

	once    sync.Once
	started bool   // the start position has been read
	last    string // the id of the event after which reading continues; "" if there is none
	seen    map[string]bool
	order   []string // the ids in seen, oldest first
}

// Follow calls take for each event from now on, once and in the stream's order, until ctx ends. When a stream ends or fails, it
// opens another one after the last event: after 1 s, doubled each time that opening fails, up to 30 s. It returns an error if the
// platform would reject the same request again.
func (f *Follower) Follow(ctx context.Context, take func(Event)) error {
	wait := firstWait
	for {
		opened, err := f.session(ctx, take)
		if ctx.Err() != nil {
			return nil
		}
		if final(err) {
			return err
		}
		if opened {
			wait = firstWait
		}
		pause := wait
		if refused := (*holdfast.Error)(nil); errors.As(err, &refused) {
			pause = max(wait, retryAfter(refused))
		}
		if !errors.Is(err, io.EOF) { // streams end every few minutes, which is not an error
			f.Notice(err, pause)
		}
		f.sleep(ctx, pause)
		wait = min(2*wait, maxWait)
	}
}

// Refused reports whether the platform would reject the same request again.
func Refused(refused *holdfast.Error) bool {
	if refused.Header.Get("Service-Should-Retry") == "false" {
		return true
	}
	return refused.Status < http.StatusInternalServerError && refused.Status != http.StatusRequestTimeout && refused.Status != http.StatusTooManyRequests
}

// final reports whether the platform would reject the same request again, or the credential cannot be renewed.
func final(err error) bool {
	if refused := (*holdfast.Error)(nil); errors.As(err, &refused) {
		return Refused(refused)
	}
	connection := (*holdfast.ConnectionError)(nil)
	return !errors.As(err, &connection) && !errors.Is(err, io.EOF) && !errors.Is(err, errCut) && !errors.Is(err, errSilent)
}

// retryAfter returns the time after which the platform accepts the request again, or 0.
func retryAfter(refused *holdfast.Error) time.Duration {
	seconds, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// sleep waits for d or until ctx ends.
func (f *Follower) sleep(ctx context.Context, d time.Duration) {
	if f.Sleep != nil {
		f.Sleep(ctx, d)
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// session opens one stream and reads it to its end. A stream without Last-Event-ID starts when it is opened, so events between two
// streams would be lost. Therefore the first stream starts after the newest event. If there is no event yet, the list of events is
// read after the stream is open, and all events in it are new.
func (f *Follower) session(ctx context.Context, take func(Event)) (opened bool, err error) {
	if !f.started {
		if err := f.begin(ctx); err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := f.open(ctx)
	if err != nil {
		return false, err
	}
	defer body.Close()
	if f.last == "" {
		if err := f.catchUp(ctx, take); err != nil {
			return true, err
		}
	}
	f.once.Do(f.Start)
	return true, f.read(ctx, cancel, body, take)
}

// begin reads the newest event, after which the first stream starts.
func (f *Follower) begin(ctx context.Context) error {
	if f.After != "" {
		f.last, f.started = f.After, true
		return nil
	}
	page, err := f.page(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	if len(page.Data) > 0 {
		e, err := eventOf(page.Data[0])
		if err != nil {
			return err
		}
		f.last = e.ID
	}
	f.started = true
	return nil
}

// catchUp calls take for all existing events, oldest first. It does not change f.last, because the list has another order than the
// stream.
func (f *Follower) catchUp(ctx context.Context, take func(Event)) error {
	var all []Event
	for cursor, more := "", true; more; {
		q := url.Values{"limit": {"100"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		page, err := f.page(ctx, q)
		if err != nil {
			return err
		}
		for _, body := range page.Data {
			e, err := eventOf(body)
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		if more = page.HasMore; more && (page.NextCursor == "" || page.NextCursor == cursor) {
			return errors.New("the list of events has no new cursor")
		}
		cursor = page.NextCursor
	}
	for _, e := range slices.Backward(all) {
		f.pass(e, take)
	}
	return nil
}

// page is one page of the list of events.
type page struct {
	Data       []json.RawMessage `json:"data"` // newest first
	HasMore    bool              `json:"has_more"`
	NextCursor string            `json:"next_cursor"`
}

// page reads one page of the list of events.
func (f *Follower) page(ctx context.Context, q url.Values) (page, error) {
	var p page
	if len(f.Types) > 0 {
		q.Set("type", strings.Join(f.Types, ","))
	}
	text, err := f.Client.Do(ctx, holdfast.Request{Method: http.MethodGet, Path: "/events", Query: q}, holdfast.WithMaxRetries(0))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%w: %w", errNoStream, err)
	}
	return p, nil
}

// open opens a stream after the last event.
func (f *Follower) open(ctx context.Context) (io.ReadCloser, error) {
	request := holdfast.Request{Method: http.MethodGet, Path: "/events/stream", Query: url.Values{}, Accept: "text/event-stream"}
	if len(f.Types) > 0 {
		request.Query.Set("type", strings.Join(f.Types, ","))
	}
	options := []holdfast.Option{holdfast.WithMaxRetries(0), holdfast.WithHeader("Cache-Control", "no-store")}
	if f.last != "" {
		options = append(options, holdfast.WithHeader("Last-Event-ID", f.last))
	}
	stream, err := f.Client.Open(ctx, request, options...)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(stream.ContentType); kind != "text/event-stream" {
		return nil, errors.Join(errNoStream, stream.Close())
	}
	return stream, nil
}

// read calls take for the events of a stream until it fails or ends. At the end it returns io.EOF.
func (f *Follower) read(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, take func(Event)) error {
	idle := f.Idle
	if idle == 0 {
		idle = defaultIdle
	}
	watch := time.AfterFunc(idle, func() { cancel(errSilent) })
	defer watch.Stop()
	stream := NewReader(&watched{body, watch, idle})
	for {
		m, err := stream.Next()
		switch {
		case errors.Is(context.Cause(ctx), errSilent):
			return errSilent
		case errors.Is(err, io.EOF), errors.Is(err, ErrTooLong):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		}
		if e, err := eventOf(m.Data); err == nil { // otherwise the message only has an id, or another format
			f.pass(e, take)
		}
		if m.ID != "" {
			f.last = m.ID
		}
	}
}

// watched runs the idle timer only while the stream is read, so that time spent in a slow receiver does not count.
type watched struct {
	io.Reader
	watch *time.Timer
	idle  time.Duration
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(w.idle)
	defer w.watch.Stop()
	return w.Reader.Read(p) // Callers compare the error with io.EOF.
}

// pass calls take for an event that was not passed to it before.
func (f *Follower) pass(e Event, take func(Event)) {
	if f.seen[e.ID] {
		return
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	if len(f.order) == maxSeen {
		delete(f.seen, f.order[0])
		f.order = f.order[1:]
	}
	f.seen[e.ID], f.order = true, append(f.order, e.ID)
	take(e)
}

// eventOf returns an event with the id and type in its body.
func eventOf(body []byte) (Event, error) {
	var e struct{ ID, Type string }
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
		return Event{}, fmt.Errorf("%w: its list has %.100q", errNoStream, body)
	}
	return Event{e.ID, e.Type, body}, nil
}
