package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/tenantstate"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Streams contains the settings of event streams. A stream ends after MaxDuration, and the client reconnects with Last-Event-ID.
// Notifier limits the open streams of a tenant. The gateway limits those of a credential and ends them when the credential has ended.
type Streams struct {
	Notifier     *app.Notifier
	MaxDuration  time.Duration   // 5 min
	PollInterval time.Duration   // 1 s: finds the events that other processes wrote
	Stop         <-chan struct{} // ends all streams when it is closed
}

// The sizes and times of a stream.
const (
	streamPage   = 100       // maximum number of events of one read
	streamBytes  = 256 << 10 // maximum bytes of their bodies; a larger event is read alone
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

// streamEvents sends events as server-sent events until the stream ends.
func (a *API) streamEvents(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	types := q.List("type")
	if err := app.CheckRead(ctx, shownTypes(types, "")); err != nil {
		return err
	}
	if len(types) == 0 {
		types = app.AllTypes()
	}
	me := caller.FromContext(ctx)
	listener, err := a.Streams.Notifier.Listen(app.Audience{Tenant: me.Tenant, Livemode: me.Live()})
	if err != nil {
		return err
	}
	defer listener.Close()
	from, err := a.begin(ctx, c.GetHeader("Last-Event-ID"))
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Request-Id", me.RequestID)
	c.Status(http.StatusOK)
	a.follow(ctx, &sse{w: c.Writer, control: http.NewResponseController(c.Writer)}, listener.C, types, from)
	return nil
}

// begin returns the position at which a stream starts: after the last event that the client received, otherwise now.
func (a *API) begin(ctx context.Context, last string) (store.Cursor, error) {
	if last == "" {
		return store.Now(ctx, a.DB.ReadToWatermark(ctx))
	}
	e, err := a.events().Read(ctx, last)
	if err != nil && apperr.As(err).Kind == apperr.Internal {
		return store.Cursor{}, err
	}
	if err != nil {
		return store.Cursor{}, apperr.Field("Last-Event-ID", "Must be the ID of an event of the last 30 days. Leave it out to start with the next event.")
	}
	return store.Cursor{At: e.UpdatedAt, ID: e.ID}, nil
}

// follow writes events as they are stored, until MaxDuration is over, the tenant is suspended, the client disconnects, or the process
// stops. An error also ends the stream. The client reconnects and continues after the last event that it received.
func (a *API) follow(ctx context.Context, out *sse, wakeups <-chan struct{}, types []string, at store.Cursor) {
	ctx, cancel := context.WithTimeout(ctx, a.Streams.MaxDuration)
	defer cancel()
	if out.begin() != nil {
		return
	}
	checked := time.Now() // when the tenant was last known to be active
	for lastWrite := time.Now(); ; {
		list, more, err := store.EventsAfter(ctx, a.DB.ReadToWatermark(ctx), store.EventRange{Types: types, After: at, MaxRows: streamPage, MaxBytes: streamBytes})
		if err != nil || out.events(list) != nil {
			return
		}
		if n := len(list); n > 0 {
			at, lastWrite = store.Cursor{At: list[n-1].UpdatedAt, ID: list[n-1].ID}, time.Now()
		}
		if more {
			continue
		}
		if time.Since(lastWrite) > heartbeat {
			if out.write([]byte(": still here\n\n")) != nil {
				return
			}
			lastWrite = time.Now()
		}
		if !a.Streams.wait(ctx, wakeups) || !a.active(ctx, &checked) {
			return
		}
	}
}

// active reports whether the tenant is known to be active. It reads the state if it was checked more than PollInterval ago.
func (a *API) active(ctx context.Context, checked *time.Time) bool {
	if time.Since(*checked) < a.Streams.PollInterval {
		return true
	}
	*checked = time.Now()
	suspended, err := tenantstate.Suspended(ctx, a.DB.Read(ctx))
	return err == nil && !suspended
}

// wait waits for a wakeup or for PollInterval. It returns false if the stream must end.
func (s *Streams) wait(ctx context.Context, wakeups <-chan struct{}) bool {
	t := time.NewTimer(s.PollInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.Stop:
		return false
	case <-wakeups:
	case <-t.C:
	}
	return true
}

// sse writes server-sent events as the HTML standard defines them.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// begin starts the stream with the time after which a client reconnects.
func (s *sse) begin() error { return s.write([]byte("retry: 1000\n\n")) }

// events writes one message for each event.
func (s *sse) events(list []domain.StoredEvent) error {
	for _, e := range list {
		if err := s.write(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: ", e.ID, e.Type), e.Body, []byte("\n\n")); err != nil {
			return err
		}
	}
	return nil
}

// write sends the parts of a message without copying a body.
func (s *sse) write(parts ...[]byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	for _, part := range parts {
		if _, err := s.w.Write(part); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}
