// Package control implements the HTTP API under /_control. Tests and people use it to inject faults into the stand-in, to act as a
// customer or a bank, and to read the state. Its token prevents web pages from using it.
package control

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast.dev/services/local/stripe/internal/api"
	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/deliver"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/faults"
	"holdfast.dev/services/local/stripe/internal/store"
)

// maxBody is the largest body, in bytes.
const maxBody = 1 << 16

// Server serves the control API.
type Server struct {
	App    *app.App
	Keys   *api.Keyring
	Faults *faults.Set
	Sender *deliver.Sender
	Token  string
}

// Handler serves /_control.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"POST /_control/accounts":              s.createAccount,
		"GET /_control/accounts/{id}/snapshot": s.snapshot,
		"POST /_control/faults":                s.addFault,
		"DELETE /_control/faults/{id}":         s.removeFault,
		"POST /_control/latency":               s.setLatency,
		"POST /_control/events":                s.setEvents,
		"POST /_control/refunds/{id}/finish":   s.finishRefund,
		"POST /_control/charges/{id}/dispute":  s.dispute,
		"POST /_control/disputes/{id}/close":   s.closeDispute,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, handle) })
	}
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, handle func(*http.Request) (any, error)) {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) != 1 {
		write(w, http.StatusUnauthorized, map[string]string{"error": "the header Authorization: Bearer with the control token is missing"})
		return
	}
	result, err := handle(r)
	var refusal *domain.Error
	switch {
	case errors.As(err, &refusal):
		write(w, refusal.Status, map[string]string{"error": refusal.Message})
	case err != nil:
		write(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
	default:
		write(w, http.StatusOK, result)
	}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client might have disconnected
}

// duration is a Go duration in JSON, such as "300ms".
type duration struct{ time.Duration }

// UnmarshalText parses a duration.
func (d *duration) UnmarshalText(text []byte) error {
	var err error
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// read decodes the body. An empty body leaves the defaults.
func read(r *http.Request, into any) error {
	decoder := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// within runs work in the scope that contains the object.
func within[T any](s *Server, kind store.Kind, id string, work func(*app.Unit) (T, error)) (any, error) {
	var result T
	err := s.App.DB.Update(func(t *store.Tx) error {
		scopes, err := t.Scopes()
		if err != nil {
			return err
		}
		for _, scope := range scopes {
			if t.Raw(scope, kind, id) != nil {
				result, err = work(&app.Unit{App: s.App, Tx: t, Scope: scope})
				return err
			}
		}
		return domain.Missing(http.StatusNotFound, string(kind), id, "id")
	})
	return result, err
}

type outcome struct {
	Outcome string `json:"outcome"`
}

// readOutcome reads the outcome that the caller requests.
func readOutcome(r *http.Request, allowed []string) (string, error) {
	in := outcome{Outcome: allowed[0]}
	if err := read(r, &in); err != nil {
		return "", err
	}
	for _, one := range allowed {
		if in.Outcome == one {
			return one, nil
		}
	}
	return "", errors.New("outcome is " + strings.Join(allowed, " or "))
}

func (s *Server) finishRefund(r *http.Request) (any, error) {
	how, err := readOutcome(r, app.Outcomes)
	if err != nil {
		return nil, err
	}
	return within(s, store.Refunds, r.PathValue("id"), func(u *app.Unit) (*domain.Refund, error) { return u.FinishRefund(r.PathValue("id"), how) })
}

func (s *Server) dispute(r *http.Request) (any, error) {
	in := struct {
		Amount *int64 `json:"amount"`
		Reason string `json:"reason"`
		// Inquiry creates an inquiry, which withdraws nothing.
		Inquiry bool `json:"inquiry"`
	}{Reason: "general"}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	return within(s, store.Charges, r.PathValue("id"), func(u *app.Unit) (*domain.Dispute, error) {
		return u.OpenDispute(r.PathValue("id"), in.Amount, in.Reason, in.Inquiry)
	})
}

func (s *Server) closeDispute(r *http.Request) (any, error) {
	how, err := readOutcome(r, []string{domain.Won, domain.Lost, domain.WarningClosed})
	if err != nil {
		return nil, err
	}
	return within(s, store.Disputes, r.PathValue("id"), func(u *app.Unit) (*domain.Dispute, error) { return u.CloseDispute(r.PathValue("id"), how) })
}
