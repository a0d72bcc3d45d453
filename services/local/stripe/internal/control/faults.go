package control

import (
	"net/http"
	"strconv"
	"time"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/faults"
	"holdfast.dev/services/local/stripe/internal/store"
)

// rule is a fault in JSON.
type rule struct {
	ID          int      `json:"id"`
	Action      string   `json:"action"`
	Method      string   `json:"method"`
	Path        string   `json:"path"`
	Account     string   `json:"account"`
	Times       int      `json:"times"`
	Every       int      `json:"every"`
	Wait        duration `json:"wait"`
	For         duration `json:"for"`
	Code        string   `json:"code"`
	ShouldRetry string   `json:"should_retry"`
	Seen        int      `json:"seen"`
	Met         int      `json:"met"`
}

func shown(r faults.Rule) rule {
	return rule{
		ID: r.ID, Action: r.Action, Method: r.Method, Path: r.Path, Account: r.Account, Times: r.Times, Every: r.Every,
		Wait: duration{r.Wait}, Code: r.Code, ShouldRetry: r.ShouldRetry, Seen: r.Seen, Met: r.Met,
	}
}

func (s *Server) addFault(r *http.Request) (any, error) {
	var in rule
	if err := read(r, &in); err != nil {
		return nil, err
	}
	f := faults.Rule{
		Action: in.Action, Method: in.Method, Path: in.Path, Account: in.Account, Times: in.Times, Every: in.Every,
		Wait: in.Wait.Duration, Code: in.Code, ShouldRetry: in.ShouldRetry,
	}
	if in.For.Duration > 0 {
		f.Until = time.Now().Add(in.For.Duration)
	}
	added, err := s.Faults.Add(f)
	return shown(added), err
}

func (s *Server) faults(*http.Request) (any, error) {
	list := []rule{}
	for _, r := range s.Faults.All() {
		list = append(list, shown(r))
	}
	return map[string]any{"faults": list, "latency": duration{s.Faults.Latency()}}, nil
}

func (s *Server) clearFaults(r *http.Request) (any, error) {
	s.Faults.Clear()
	return s.faults(r)
}

func (s *Server) removeFault(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !s.Faults.Remove(id) {
		return nil, domain.Missing(http.StatusNotFound, "fault", r.PathValue("id"), "id")
	}
	return s.faults(r)
}

func (s *Server) setLatency(r *http.Request) (any, error) {
	var in struct {
		Latency duration `json:"latency"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	s.Faults.SetLatency(in.Latency.Duration)
	return s.faults(r)
}

// eventMode is a mode of events in JSON.
type eventMode struct {
	Account string   `json:"account"`
	Stopped bool     `json:"stopped"`
	Dropped bool     `json:"dropped"`
	Repeat  int      `json:"repeat"`
	Shuffle duration `json:"shuffle"`
	Delay   duration `json:"delay"`
	Age     duration `json:"age"`
}

func (s *Server) setEvents(r *http.Request) (any, error) {
	var in eventMode
	if err := read(r, &in); err != nil {
		return nil, err
	}
	s.App.Events.Set(in.Account, app.EventMode{
		Stopped: in.Stopped, Dropped: in.Dropped, Repeat: max(in.Repeat, 0), Shuffle: in.Shuffle.Duration, Delay: in.Delay.Duration, Age: in.Age.Duration,
	})
	s.Sender.Wake()
	return in, nil
}

// events returns the number of pending deliveries, and the results of the others.
func (s *Server) events(*http.Request) (any, error) {
	waiting := 0
	err := s.App.DB.View(func(t *store.Tx) error {
		all, err := t.Deliveries()
		waiting = len(all)
		return err
	})
	return map[string]any{
		"waiting": waiting, "sent": s.Sender.Sent.Load(), "failed": s.Sender.Failed.Load(), "given_up": s.Sender.GivenUp.Load(),
	}, err
}

func (s *Server) advance(r *http.Request) (any, error) {
	var in struct {
		By duration `json:"by"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.By.Duration < 0 {
		return nil, domain.Invalid("", "by", "The clock moves forward only.")
	}
	if err := s.App.DB.Advance(in.By.Duration); err != nil {
		return nil, err
	}
	s.Moved()
	return map[string]any{"now": s.App.DB.Now().UTC().Format(time.RFC3339)}, nil
}
