package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

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

// When the thousands of keys that a tenant can have become too old together, a few of them are looked up at once. Those of another tenant
// do not wait for them.
func TestFewKeysOfATenantAreLookedUpAgainAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var running, most, calls int
	busy, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	quick := apikey.New(caller.Test)
	var slow time.Duration
	lookup := func(_ context.Context, hash [32]byte, kind string) (domain.Principal, error) {
		if hash == apikey.Hash(quick) {
			return domain.Principal{Caller: caller.Caller{Tenant: other, Kind: kind}}, nil
		}
		mu.Lock()
		running++
		calls++
		most = max(most, running)
		wait := slow
		mu.Unlock()
		time.Sleep(wait)
		mu.Lock()
		running--
		mu.Unlock()
		return domain.Principal{Caller: caller.Caller{Tenant: busy, Kind: kind}}, nil
	}
	const ttl = 10 * time.Millisecond
	p := NewPrincipals(lookup, PrincipalOptions{TTL: ttl, Size: 100, Lookups: NewLookups(1, 1000), Local: NewCounters(100)}, NewMetrics(prometheus.NewRegistry()))
	keys := []string{quick}
	for range 40 {
		keys = append(keys, apikey.New(caller.Test))
	}
	for _, key := range keys {
		if _, err := p.Find(t.Context(), key, "1.1.1.1"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * ttl)
	slow, calls = 20*ttl, 0
	var all sync.WaitGroup
	for _, key := range keys[1:] {
		all.Go(func() {
			if _, err := p.Find(t.Context(), key, "1.1.1.1"); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(2 * ttl) // the first ones are being looked up
	if _, err := p.Find(t.Context(), quick, "1.1.1.1"); err != nil {
		t.Error(err)
	}
	mu.Lock()
	if calls == 40 {
		t.Error("another tenant waited for all keys")
	}
	mu.Unlock()
	all.Wait()
	if most != lookupsOfTenant || calls != 40 {
		t.Errorf("%d of %d lookups at once", most, calls)
	}
}
