package control

import (
	"net/http"
	"strconv"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/faults"
)

// rule is a fault in JSON.
type rule struct {
	ID      int    `json:"id"`
	Action  string `json:"action"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Account string `json:"account"`
	Times   int    `json:"times"`
	Every   int    `json:"every"`
	Code    string `json:"code"`
}

func (s *Server) addFault(r *http.Request) (any, error) {
	var in rule
	if err := read(r, &in); err != nil {
		return nil, err
	}
	var err error
	in.ID, err = s.Faults.Add(faults.Rule{
		Action: in.Action, Method: in.Method, Path: in.Path, Account: in.Account, Times: in.Times, Every: in.Every, Code: in.Code,
	})
	return in, err
}

func (s *Server) removeFault(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !s.Faults.Remove(id) {
		return nil, domain.Missing(http.StatusNotFound, "fault", r.PathValue("id"), "id")
	}
	return struct{}{}, nil
}

func (s *Server) setLatency(r *http.Request) (any, error) {
	var in struct {
		Latency duration `json:"latency"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	s.Faults.SetLatency(in.Latency.Duration)
	return struct{}{}, nil
}

// setEvents sets the mode of an account's events.
func (s *Server) setEvents(r *http.Request) (any, error) {
	var in struct {
		Account string   `json:"account"`
		Stopped bool     `json:"stopped"`
		Dropped bool     `json:"dropped"`
		Repeat  int      `json:"repeat"`
		Shuffle duration `json:"shuffle"`
		Age     duration `json:"age"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	s.App.Events.Set(in.Account, app.EventMode{
		Stopped: in.Stopped, Dropped: in.Dropped, Repeat: max(in.Repeat, 0), Shuffle: in.Shuffle.Duration, Age: in.Age.Duration,
	})
	s.Sender.Wake()
	return struct{}{}, nil
}
