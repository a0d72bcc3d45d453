package app

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/services/identity/internal/domain"
)

// Metrics are counters for the platform's operators. A nil Metrics counts nothing.
type Metrics struct {
	signIns *prometheus.CounterVec
	ended   *prometheus.CounterVec
}

// The outcomes of a sign-in attempt.
const (
	signInOK      = "ok"
	signInWrong   = "wrong"
	signInDelayed = "delayed"
	signInFailed  = "failed"
)

// NewMetrics creates and registers the metrics. Each series begins at 0, so that its first increase is visible.
func NewMetrics(reg prometheus.Registerer, passwords *Passwords) *Metrics {
	m := &Metrics{
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sign_ins_total", Help: "Sign-in attempts with a password or a second factor, by outcome: ok, wrong, delayed or failed.",
		}, []string{"outcome"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "oauth_grants_ended_total", Help: "Ended grants of apps, by reason.",
		}, []string{"reason"}),
	}
	for _, outcome := range []string{signInOK, signInWrong, signInDelayed, signInFailed} {
		m.signIns.WithLabelValues(outcome)
	}
	for _, reason := range domain.RevokeReasons {
		m.ended.WithLabelValues(string(reason))
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "passwords_waiting", Help: "Passwords waiting to be hashed.",
	}, func() float64 { return float64(passwords.waiting.Load()) })
	reg.MustRegister(m.signIns, m.ended, waiting)
	return m
}

// signedIn counts an attempt by its error.
func (m *Metrics) signedIn(err error) {
	if m == nil {
		return
	}
	var wait *WaitError
	outcome := signInFailed
	switch {
	case err == nil:
		outcome = signInOK
	case errors.Is(err, ErrSignIn):
		outcome = signInWrong
	case errors.As(err, &wait):
		outcome = signInDelayed
	}
	m.signIns.WithLabelValues(outcome).Inc()
}

func (m *Metrics) grantEnded(why domain.RevokeReason) {
	if m != nil {
		m.ended.WithLabelValues(string(why)).Inc()
	}
}
