package holdfast

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// The times of a stream.
const (
	reconnectWait = time.Second      // unless the platform sends another time
	maxReconnect  = 30 * time.Second // after failures
	silence       = time.Minute      // without a byte; the platform sends a comment every 15 seconds
)

// errSilent is the cause of a stream that sent nothing for too long.
var errSilent = errors.New("the stream sent nothing for a minute")

// follower reads a stream and continues it after each end.
type follower struct {
	client  *Client
	call    call
	types   []EventType
	options []Option
	last    string // ID of the last event; "" if there was none yet
	wait    time.Duration
}

// stream iterates over the events of a stream. Without LastEventID, it starts after the newest event, whose ID it reads first, so that
// no event is lost if the first connection fails. If there is no event yet, session looks for the first one.
func stream(ctx context.Context, c *Client, request call, p EventsStreamParams, options []Option) iter.Seq2[Event, error] {
	request.accept = "text/event-stream"
	return func(yield func(Event, error) bool) {
		f := &follower{client: c, call: request, types: p.Type, options: options, last: p.LastEventID, wait: reconnectWait}
		if f.last == "" {
			page, err := c.Events.ListPage(ctx, EventsListParams{Limit: 1, Type: p.Type}, options...)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page.Data) > 0 {
				f.last = page.Data[0].EventID()
			}
		}
		f.follow(ctx, yield)
	}
}

// follow opens the stream again and again until ctx ends, the caller stops, or the platform refuses the request.
func (f *follower) follow(ctx context.Context, yield func(Event, error) bool) {
	s := f.client.settings.with(f.options)
	for failures := 0; ; {
		received, stopped, err := f.session(ctx, yield)
		if stopped {
			return
		}
		if received {
			failures = 0
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		wait := f.wait
		if err != nil {
			failures++
			var again bool
			if wait, again = f.retry(err, failures); !again || s.retriesSet && failures > s.retries {
				yield(nil, err)
				return
			}
		}
		_ = sleep(ctx, wait) // the next session returns at once if ctx has ended
	}
}

// retry reports whether a stream that failed can be opened again, and how long to wait before it.
func (f *follower) retry(err error, failures int) (time.Duration, bool) {
	wait := min(f.wait<<min(failures-1, 5), maxReconnect)
	if e := (*Error)(nil); errors.As(err, &e) {
		after, ok := retryAfter(e.Header.Get("Retry-After"))
		if ok {
			wait = max(wait, after)
		}
		return wait, temporary(e) && after <= maxRetryAfter
	}
	var connection *ConnectionError
	return wait, errors.As(err, &connection) && !permanent(err)
}

// session reads one response. A response that ends is not an error. An event that cannot be read is.
func (f *follower) session(ctx context.Context, yield func(Event, error) bool) (received, stopped bool, err error) {
	a, err := f.client.prepare(f.call, f.options)
	if err != nil {
		yield(nil, err)
		return false, true, nil
	}
	a.stream, a.settings.retries = true, 0
	if f.last != "" {
		a.header.Set("Last-Event-ID", f.last)
	}
	r, err := a.run(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() {
		_ = r.body.Close()
	}()
	if f.last == "" {
		if first, err := f.first(ctx); first != nil || err != nil {
			return first != nil, first != nil && !yield(first, nil), err
		}
	}
	return f.read(r.body, yield)
}

// read reads the events of a response until it ends, fails, or the caller stops.
func (f *follower) read(body io.ReadCloser, yield func(Event, error) bool) (received, stopped bool, err error) {
	watch := time.AfterFunc(silence, func() { _ = body.Close() })
	lines := bufio.NewReader(body)
	var m message
	for {
		line, err := lines.ReadString('\n')
		if !watch.Stop() {
			err = errSilent
		}
		if errors.Is(err, io.EOF) {
			return received, false, nil
		}
		if err != nil {
			return received, false, &ConnectionError{Method: f.call.method, Path: f.call.path, Attempts: 1, Err: err}
		}
		watch.Reset(silence)
		if !m.add(strings.TrimRight(line, "\r\n")) {
			continue
		}
		event, ok, err := f.take(&m)
		if err != nil {
			yield(nil, err)
			return received, true, nil
		}
		if ok {
			received = true
			watch.Stop() // the caller can take as long as it wants
			if !yield(event, nil) {
				return received, true, nil
			}
			watch.Reset(silence)
		}
	}
}

// first returns the tenant's first event, or nil if there is none, and remembers its ID. A stream without Last-Event-ID starts when it
// is opened, so the events since the follower started would be lost. The next session continues after the first one.
func (f *follower) first(ctx context.Context) (Event, error) {
	page, err := f.client.Events.ListPage(ctx, EventsListParams{Limit: 1, Sort: SortOrderUpdatedAt, Type: f.types}, f.options...)
	if err != nil || len(page.Data) == 0 {
		return nil, err
	}
	f.last = page.Data[0].EventID()
	return page.Data[0], nil
}

// take returns the event of a complete message, and remembers its ID. A message without data has no event.
func (f *follower) take(m *message) (Event, bool, error) {
	defer func() { *m = message{} }()
	if m.retry > 0 {
		f.wait = m.retry
	}
	if len(m.data) == 0 {
		return nil, false, nil
	}
	event, err := ParseEvent([]byte(strings.Join(m.data, "\n")))
	if err != nil {
		return nil, false, err
	}
	if m.id != "" {
		f.last = m.id
	}
	return event, true, nil
}

// message is a message of the stream, as the HTML standard defines server-sent events.
type message struct {
	id    string
	data  []string
	retry time.Duration
}

// add adds a line, and reports whether the message is complete.
func (m *message) add(line string) bool {
	if line == "" {
		return true
	}
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "id":
		m.id = value
	case "data":
		m.data = append(m.data, value)
	case "retry":
		if ms, err := strconv.Atoi(value); err == nil && ms > 0 {
			m.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return false
}
