package api

import (
	"io"
	"net/http"
	"time"
)

// beat is how often a stream sends something, so that a browser that is gone is noticed.
const beat = 20 * time.Second

// live tells a page, as server-sent events, that something has changed. The page then fetches itself again.
func live(v *visit) error {
	changes, end, err := v.s.Live.Subscribe(v.r.Context())
	if err != nil {
		return err
	}
	defer end()
	v.guard()
	w := v.c.Writer
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	over, tick := time.NewTimer(v.s.LiveTime), time.NewTicker(beat)
	defer over.Stop()
	defer tick.Stop()
	say := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(beat))
		if _, err := io.WriteString(w, text); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	for ok := say(": open\n\n"); ok; {
		select {
		case <-v.r.Context().Done():
			return nil
		case <-v.s.stopping:
			return nil
		case <-over.C:
			return nil
		case <-tick.C:
			ok = say(": still here\n\n")
		case <-changes:
			ok = say("event: change\ndata: {}\n\n")
		}
	}
	return nil
}
