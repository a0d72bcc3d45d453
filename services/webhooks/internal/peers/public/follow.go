package public

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
	"strings"
	"sync"
	"time"
)

const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
	silence     = 90 * time.Second
	remembered  = 10_000 // events that are known when they come again
)

var (
	errSilent   = errors.New("the stream fell silent")
	errCut      = errors.New("the stream was cut off")
	errNoStream = errors.New("what answers is no event stream: is the base URL right?")
)

// Event is one of the platform's events.
type Event struct {
	ID, Type string
	Body     []byte // as deliveries carry it
}

// Follower reads the events of a client's tenant and mode as they happen.
type Follower struct {
	Client *Client
	Types  []string                             // none: every type
	Start  func()                               // called once: from now on nothing is missed
	Notice func(err error, wait time.Duration)  // what went wrong, and when it is tried again
	Sleep  func(context.Context, time.Duration) // nil: the real one
	Idle   time.Duration                        // without a byte for so long a stream is dead; 0: 90 s

	once  sync.Once
	begun bool   // the place from which on to read is known
	last  string // the id behind which to go on; "" while there was none at the beginning, and none in a stream
	seen  map[string]bool
	order []string // of seen, the oldest first
}

// Follow hands take each event that happens from now on, once and in the stream's order, until ctx ends. It
// outlives streams that end, networks that fail and a platform that restarts: it goes on behind the last event,
// after 1 s, doubling to 30 s while nothing can be opened. What the platform refuses for good is returned.
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
		if r := (*Refusal)(nil); errors.As(err, &r) {
			pause = max(wait, r.After)
		}
		if !errors.Is(err, io.EOF) { // streams end every few minutes; that is not worth a word
			f.Notice(err, pause)
		}
		f.sleep(ctx, pause)
		wait = min(2*wait, longestWait)
	}
}

// final reports whether the same request would be refused again.
func final(err error) bool {
	if errors.Is(err, ErrTooLong) || errors.Is(err, errNoStream) {
		return true
	}
	r := (*Refusal)(nil)
	return errors.As(err, &r) && r.Status < http.StatusInternalServerError &&
		r.Status != http.StatusRequestTimeout && r.Status != http.StatusTooManyRequests
}

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

// session is the life of one stream. A stream without Last-Event-ID begins at the moment it is opened, so what
// happens between two of them would be lost: the place to begin is therefore that of the newest event. Where
// there is none yet, the list is read once the stream is open; whatever is in it is new.
func (f *Follower) session(ctx context.Context, take func(Event)) (opened bool, err error) {
	if !f.begun {
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
	defer body.Close() //nolint:errcheck // only read
	if f.last == "" {
		if err := f.catchUp(ctx, take); err != nil {
			return true, err
		}
	}
	f.once.Do(f.Start)
	return true, f.read(ctx, cancel, body, take)
}

// begin finds the newest event, behind which to read.
func (f *Follower) begin(ctx context.Context) error {
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
	f.begun = true
	return nil
}

// catchUp takes all the events that there are, the oldest first. It moves no place: the list is in another order than
// the stream, which alone knows what comes behind an event.
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
		cursor, more = page.NextCursor, page.HasMore && page.NextCursor != ""
	}
	for _, e := range slices.Backward(all) {
		f.pass(e, take)
	}
	return nil
}

type page struct {
	Data       []json.RawMessage `json:"data"` // newest first
	HasMore    bool              `json:"has_more"`
	NextCursor string            `json:"next_cursor"`
}

func (f *Follower) page(ctx context.Context, q url.Values) (page, error) {
	var p page
	if len(f.Types) > 0 {
		q.Set("type", strings.Join(f.Types, ","))
	}
	err := f.Client.Call(ctx, http.MethodGet, "/events?"+q.Encode(), nil, &p)
	return p, err
}

func (f *Follower) open(ctx context.Context) (io.ReadCloser, error) {
	path := "/events/stream"
	if len(f.Types) > 0 {
		path += "?" + url.Values{"type": {strings.Join(f.Types, ",")}}.Encode()
	}
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	res, err := f.Client.send(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		_ = res.Body.Close()
		return nil, errNoStream
	}
	return res.Body, nil
}

// read takes events until the stream ends, which is io.EOF, or fails.
func (f *Follower) read(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, take func(Event)) error {
	idle := f.Idle
	if idle == 0 {
		idle = silence
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
		if e, err := eventOf(m.Data); err == nil { // else it only moves the id, or is of a kind that is not known yet
			f.pass(e, take)
		}
		if m.ID != "" {
			f.last = m.ID
		}
	}
}

// watched stops the watch while nobody waits for the stream: a slow receiver is no silence.
type watched struct {
	io.Reader
	watch *time.Timer
	idle  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(w.idle)
	defer w.watch.Stop()
	return w.Reader.Read(p) //nolint:wrapcheck // io.EOF must stay what it is
}

// pass takes an event that was not taken before.
func (f *Follower) pass(e Event, take func(Event)) {
	if f.seen[e.ID] {
		return
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	if len(f.order) == remembered {
		delete(f.seen, f.order[0])
		f.order = f.order[1:]
	}
	f.seen[e.ID], f.order = true, append(f.order, e.ID)
	take(e)
}

func eventOf(body []byte) (Event, error) {
	var e struct{ ID, Type string }
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
		return Event{}, fmt.Errorf("%w: it lists %.100q", errNoStream, body)
	}
	return Event{e.ID, e.Type, body}, nil
}
