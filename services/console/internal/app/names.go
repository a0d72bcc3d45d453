package app

import (
	"context"
	"sync"
	"time"

	"holdfast.dev/libs/cache"
	"holdfast.dev/libs/caller"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/peers"
)

const (
	namesCached = 20_000 // names that this process caches
	namesAge    = 30 * time.Second
	namesMost   = 60 // maximum number that one page looks up
	atOnce      = 8  // parallel look-ups of a page
)

// Names caches the names of resources, so that a list shows names in place of ids.
type Names struct {
	services *peers.Services
	cache    cache.Cache[nameKey, string]
}

// nameKey separates the names of tenants and modes.
type nameKey struct{ tenant, mode, id string }

// NewNames creates an empty cache.
func NewNames(s *peers.Services) *Names {
	return &Names{services: s, cache: cache.New[nameKey](cache.Options[string]{Size: namesCached, TTL: namesAge})}
}

func keyOf(c caller.Caller, id string) nameKey {
	return nameKey{c.Tenant.String(), string(c.Mode), id}
}

// Of returns the names of ids. An id that cannot be looked up is omitted: the page shows the id.
func (n *Names) Of(ctx context.Context, ids []string) map[string]string {
	who := caller.FromContext(ctx)
	out, requests := map[string]string{}, map[string]domain.Request{}
	for _, id := range ids {
		r := domain.ResourceOf(id)
		if r == nil || !r.HasPage() || n.operation(r).Allowed(ctx) != nil {
			continue
		}
		if name, ok := n.cache.Get(keyOf(who, id)); ok {
			out[id] = name
		} else if r.Whole { // one call returns all of them
			requests[r.Name] = domain.Request{Operation: r.List}
		} else if len(requests) < namesMost {
			requests[id] = domain.Request{Operation: r.Get, Params: []string{id}}
		}
	}
	var mu sync.Mutex
	places := make(chan struct{}, atOnce)
	looks := make([]func() error, 0, len(requests))
	for _, req := range requests {
		looks = append(looks, func() error {
			places <- struct{}{}
			defer func() { <-places }()
			found := n.look(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			for id, name := range found {
				n.cache.Set(keyOf(who, id), name)
				out[id] = name
			}
			return nil
		})
	}
	_ = RunConcurrently(looks...) // names that are not found are omitted
	return out
}

// look makes a call and returns the names of the resources in its response, by id.
func (n *Names) look(ctx context.Context, req domain.Request) map[string]string {
	raw, err := n.services.Call(ctx, req)
	if err != nil {
		return nil
	}
	var one domain.Object
	if domain.Decode(raw, &one) != nil {
		return nil
	}
	all := one.Objects("data")
	if len(req.Params) > 0 {
		all = []domain.Object{one}
	}
	out := map[string]string{}
	for _, o := range all {
		id := o.Text("id")
		if len(req.Params) > 0 {
			id = req.Params[0]
		}
		if r := domain.ResourceOf(id); r != nil {
			out[id] = r.TitleOf(o)
		}
	}
	return out
}

// operation returns the call that reads a resource.
func (n *Names) operation(r *domain.Resource) *domain.Operation {
	if r.Whole {
		return n.services.Operations[r.List]
	}
	return n.services.Operations[r.Get]
}

// Forget removes the name of a resource that has changed.
func (n *Names) Forget(ctx context.Context, id string) {
	n.cache.Delete(keyOf(caller.FromContext(ctx), id))
}
