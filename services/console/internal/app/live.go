package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/peers"
)

// ErrTooManyPages reports that this process already updates the maximum number of pages. Other pages work without updates.
var ErrTooManyPages = apperr.New(apperr.RateLimited, "rate_limited", "Too many pages are open.")

const (
	reconnect  = time.Second // pause before a stream that ended is reopened
	streamTime = 4 * time.Minute
)

// Live notifies open pages that something has changed. It reads one stream of events for each tenant and mode, regardless of how
// many pages show it.
type Live struct {
	services *peers.Services
	most     int // pages of this process
	mu       sync.Mutex
	open     int                 // guarded by mu
	feeds    map[workplace]*feed // guarded by mu; only those that a page reads
}

type workplace struct {
	tenant ids.Tenant
	mode   caller.Mode
}

// feed is the stream of a tenant and mode. Its pages are guarded by Live.mu.
type feed struct {
	pages map[chan struct{}]func(eventType string) bool
	stop  context.CancelFunc
}

// NewLive creates a Live that updates at most that many pages at the same time.
func NewLive(s *peers.Services, most int) *Live {
	return &Live{services: s, most: most, feeds: map[workplace]*feed{}}
}

// Subscribe returns a channel that holds a value whenever something changed that the caller in ctx can read. The caller must call
// end.
func (l *Live) Subscribe(ctx context.Context) (changes <-chan struct{}, end func(), err error) {
	who := caller.FromContext(ctx)
	at := workplace{who.Tenant, who.Mode}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		return nil, nil, ErrTooManyPages
	}
	f := l.feeds[at]
	if f == nil {
		running, stop := context.WithCancel(context.Background())
		f = &feed{pages: map[chan struct{}]func(string) bool{}, stop: stop}
		l.feeds[at] = f
		go l.run(running, at, f) //nolint:contextcheck // the stream outlives the page that was first
	}
	c := make(chan struct{}, 1)
	f.pages[c] = func(eventType string) bool {
		return slices.ContainsFunc(proto.EventTypes, func(t proto.EventType) bool { return t.Name == eventType && who.Has(t.Scope) })
	}
	l.open++
	return c, sync.OnceFunc(func() { l.leave(at, f, c) }), nil
}

func (l *Live) leave(at workplace, f *feed, c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(f.pages, c)
	l.open--
	if len(f.pages) == 0 {
		f.stop()
		delete(l.feeds, at)
	}
}

// Open returns how many pages this process updates.
func (l *Live) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// run reads the stream until ctx ends, and resumes after an interruption.
func (l *Live) run(ctx context.Context, at workplace, f *feed) {
	who := caller.Service("console", at.tenant, at.mode)
	who.Scopes = proto.Scopes
	last := ""
	for ctx.Err() == nil {
		_ = l.read(caller.With(ctx, who), f, &last) // webhooks logs the reason for a refusal; the pages continue without updates
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

func (l *Live) read(ctx context.Context, f *feed, last *string) error {
	ctx, cancel := context.WithTimeout(ctx, streamTime)
	defer cancel()
	body, err := l.services.Stream(ctx, "streamEvents", *last)
	if err != nil {
		return err
	}
	defer body.Close()
	for e, err := range sse.Read(body, nil) {
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		*last = e.LastEventID
		l.notify(f, e.Type)
	}
	return nil
}

// notify wakes the pages that can read the event. A page with a pending notification gets no second one.
func (l *Live) notify(f *feed, eventType string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, reads := range f.pages {
		if reads(eventType) {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
