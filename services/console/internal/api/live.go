package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/console/internal/domain"
)

const (
	// beat is how often a stream sends data to detect a disconnected browser and checks whether its session still exists.
	beat = 20 * time.Second
	// writeTime is the time limit of one write to a browser.
	writeTime = 20 * time.Second
	// unanswered is how many consecutive session checks can get no response before the stream ends.
	unanswered = 2

	livePath = "/admin/:tenant/:mode/live"
)

// Limits of streams and downloads for a session and an operator. Before that, the gateway limits those of a cookie.
const (
	streamsOfSession, streamsOfOperator     = 10, 20
	downloadsOfSession, downloadsOfOperator = 2, 4
)

// live notifies a page, through server-sent events, that something has changed. The page then reloads itself. The stream ends
// with its session.
func live(p *page) error {
	leave, err := p.server.streams.Take(p.auth)
	if err != nil {
		return err
	}
	defer leave()
	changes, end, err := p.server.Live.Subscribe(p.r.Context())
	if err != nil {
		return err
	}
	defer end()
	p.server.site.Guard(p.c.Writer)
	w := p.c.Writer
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	over, tick := time.NewTimer(p.server.LiveTime), time.NewTicker(p.server.Beat)
	defer over.Stop()
	defer tick.Stop()
	say := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := io.WriteString(w, text); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	open := p.watch()
	for ok := say(": open\n\n"); ok; {
		select {
		case <-p.r.Context().Done():
			return nil
		case <-p.server.stopping:
			return nil
		case <-over.C:
			return nil
		case <-tick.C:
			ok = open() && say(": still here\n\n")
		case <-changes:
			ok = say("event: change\ndata: {}\n\n")
		}
	}
	return nil
}

// watch returns a function that reports whether the page's session still exists, with the same role at the tenant, and the tenant is
// not suspended.
func (s *session) watch() (open func() bool) {
	failures := 0
	return func() bool {
		ctx, cancel := context.WithTimeout(s.r.Context(), s.server.Beat)
		defer cancel()
		session, err := s.app.Services.WatchSession(ctx, s.token, httpx.RequestID(s.c))
		if err != nil {
			failures++
			return !errors.Is(err, domain.ErrNoSession) && failures < unanswered
		}
		failures = 0
		w, err := session.Enter(s.workspace.Tenant.Slug, string(s.workspace.Mode))
		return err == nil && !w.Tenant.Suspended && session.ID == s.auth.ID && w.Tenant.Role == s.workspace.Tenant.Role && w.Tenant.ID == s.workspace.Tenant.ID
	}
}
