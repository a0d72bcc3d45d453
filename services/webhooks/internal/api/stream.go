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

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// Streams says how streams of events go. A stream ends after Life, so that a revoked credential does not read on: its
// reader comes back with Last-Event-ID. Bell bounds how many a tenant has open, the gateway how many a credential has.
type Streams struct {
	Bell *app.Bell
	Life time.Duration   // 5 min
	Poll time.Duration   // 1 s: what other processes took in
	Stop <-chan struct{} // ends all
}

const (
	streamPage   = 100       // events of one read
	streamBytes  = 256 << 10 // of their bodies; a larger event is read alone
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

func (a *API) streamEvents(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	types := q.List("type")
	if err := app.MayRead(ctx, asked(types, "")); err != nil {
		return err
	}
	if len(types) == 0 {
		types = app.AllTypes()
	}
	who := caller.Must(ctx)
	bell, err := a.Streams.Bell.Listen(app.Audience{Tenant: who.Tenant, Livemode: who.Live()})
	if err != nil {
		return err
	}
	defer bell.Close()
	from, err := a.begin(ctx, c.GetHeader("Last-Event-ID"))
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Request-Id", who.RequestID)
	c.Status(http.StatusOK)
	a.follow(ctx, &sse{w: c.Writer, control: http.NewResponseController(c.Writer)}, bell.C, types, from)
	return nil
}

// begin is where a stream starts: behind the event that was received last, else now.
func (a *API) begin(ctx context.Context, last string) (store.Cursor, error) {
	if last == "" {
		return store.Now(ctx, a.DB.ReadSettled(ctx))
	}
	e, err := a.event(ctx, last)
	if err != nil && apperr.As(err).Kind == apperr.Internal {
		return store.Cursor{}, err
	}
	if err != nil {
		return store.Cursor{}, apperr.Field("Last-Event-ID", "Must be the id of an event of the last 30 days.")
	}
	return store.Cursor{At: e.UpdatedAt, ID: e.ID}, nil
}

// follow writes events as they come in, until the stream's life is over, its reader gone, or the process stops.
// What goes wrong ends it: the reader goes on from where he is.
func (a *API) follow(ctx context.Context, out *sse, rung <-chan struct{}, types []string, at store.Cursor) {
	ctx, cancel := context.WithTimeout(ctx, a.Streams.Life)
	defer cancel()
	if out.begin() != nil {
		return
	}
	for quiet := time.Now(); ; {
		list, more, err := store.EventsBehind(ctx, a.DB.ReadSettled(ctx), store.EventRange{Types: types, After: at, MaxRows: streamPage, MaxBytes: streamBytes})
		if err != nil || out.events(list) != nil {
			return
		}
		if n := len(list); n > 0 {
			at, quiet = store.Cursor{At: list[n-1].UpdatedAt, ID: list[n-1].ID}, time.Now()
		}
		if more {
			continue
		}
		if time.Since(quiet) > heartbeat {
			if out.write([]byte(": still here\n\n")) != nil {
				return
			}
			quiet = time.Now()
		}
		if !a.Streams.rest(ctx, rung) {
			return
		}
	}
}

// rest waits for something to do; false is the end of the stream.
func (s *Streams) rest(ctx context.Context, rung <-chan struct{}) bool {
	t := time.NewTimer(s.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.Stop:
		return false
	case <-rung:
	case <-t.C:
	}
	return true
}

// sse writes server-sent events, as the HTML standard has them.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *sse) begin() error { return s.write([]byte("retry: 1000\n\n")) }

func (s *sse) events(list []domain.StoredEvent) error {
	for _, e := range list {
		if err := s.write(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: ", e.ID, e.Type), e.Body, []byte("\n\n")); err != nil {
			return err
		}
	}
	return nil
}

// write sends the parts of a message, as they are: a body is not copied.
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
