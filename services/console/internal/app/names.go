package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/peers"
)

const (
	namesKept = 20_000 // names that this process remembers
	namesAge  = 30 * time.Second
	namesMost = 60 // that one page looks up
	atOnce    = 8  // look-ups of a page at once
)

// Names remembers how resources are called, so that a list shows names in place of ids.
type Names struct {
	services *peers.Services
	cache    *otter.Cache[nameKey, string]
}

// nameKey keeps the names of tenants and modes apart.
type nameKey struct{ tenant, mode, id string }

// NewNames makes an empty memory.
func NewNames(s *peers.Services) *Names {
	return &Names{services: s, cache: otter.Must(&otter.Options[nameKey, string]{
		MaximumSize: namesKept, ExpiryCalculator: otter.ExpiryWriting[nameKey, string](namesAge),
	})}
}

func keyOf(c caller.Caller, id string) nameKey {
	return nameKey{c.Tenant.String(), string(c.Mode), id}
}

// Of returns the names of ids. One that cannot be looked up is left out: the page shows its id.
func (n *Names) Of(ctx context.Context, wanted []string) map[string]string {
	who := caller.FromContext(ctx)
	out, missing := map[string]string{}, map[string]*domain.Resource{}
	for _, id := range wanted {
		r := domain.ResourceOf(id)
		if r == nil || r.Get == "" || !n.reads(who, r) {
			continue
		}
		if name, ok := n.cache.GetIfPresent(keyOf(who, id)); ok {
			out[id] = name
		} else if len(missing) < namesMost {
			missing[id] = r
		}
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, atOnce)
	for id, r := range missing {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			raw, err := n.services.Call(ctx, domain.Request{Operation: r.Get, Params: []string{id}})
			var o domain.Object
			if err != nil || domain.Decode(raw, &o) != nil {
				return
			}
			name := r.TitleOf(o)
			n.cache.Set(keyOf(who, id), name)
			mu.Lock()
			defer mu.Unlock()
			out[id] = name
		})
	}
	wait.Wait()
	return out
}

// reads reports whether the caller may read a resource: a name that another role of the tenant has looked up is not for it.
func (n *Names) reads(who caller.Caller, r *domain.Resource) bool {
	return !slices.ContainsFunc(n.services.Contract.Operation(r.Get).Scopes, func(s string) bool { return !who.Has(s) })
}

// Forget removes the name of a resource that has changed.
func (n *Names) Forget(ctx context.Context, id string) {
	n.cache.Invalidate(keyOf(caller.FromContext(ctx), id))
}
