package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/gateway/internal/domain"
)

// Without identity, a principal is used for 30 s, regardless of the cache's own time. A response of identity always takes
// precedence.
func TestRefresh(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age    time.Duration
		says   error
		passes bool
	}{
		{29 * time.Second, apperr.ErrUnavailable, true},
		{31 * time.Second, apperr.ErrUnavailable, false},
		{29 * time.Second, apperr.ErrTimeout, true},
		{2 * time.Second, domain.ErrInvalid, false},
	} {
		p := NewPrincipals(func(context.Context, [32]byte, string) (domain.Principal, error) { return domain.Principal{}, c.says },
			PrincipalOptions{TTL: time.Hour, Size: 10, Lookups: NewLookups(1, 1)}, NewMetrics(prometheus.NewRegistry()))
		known := &Credential{loaded: time.Now().Add(-c.age)}
		got, err := (&Pipeline{Principals: p}).refresh(t.Context(), known, "", "")
		if c.passes != (err == nil && got == known) || !c.passes && !errors.Is(err, c.says) {
			t.Errorf("%s old, identity says %v: %v", c.age, c.says, err)
		}
	}
	dead := NewPrincipals(func(context.Context, [32]byte, string) (domain.Principal, error) {
		return domain.Principal{Revoked: true}, nil
	},
		PrincipalOptions{TTL: time.Hour, Size: 10, Lookups: NewLookups(1, 1)}, NewMetrics(prometheus.NewRegistry()))
	if _, err := (&Pipeline{Principals: dead}).refresh(t.Context(), &Credential{loaded: time.Now()}, "", ""); !errors.Is(err, domain.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}
