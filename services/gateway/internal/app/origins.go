package app

import (
	"context"
	"time"
)

// Origins knows which origins of browsers apps have registered.
type Origins struct {
	lookup func(ctx context.Context, origin string) (bool, error)
	cache  cache[string, bool]
}

const (
	originsKept = 10 * time.Second
	originsSize = 1000
	longOrigin  = 255 // bytes; no registered one is longer
)

// NewOrigins makes an empty cache in front of lookup.
func NewOrigins(lookup func(ctx context.Context, origin string) (bool, error)) *Origins {
	return &Origins{lookup: lookup, cache: newCache[string, bool](originsSize, originsKept, sinceWrite)}
}

// Registered reports whether an app has registered an origin, as it was at most ten seconds ago.
func (o *Origins) Registered(ctx context.Context, origin string) (bool, error) {
	if len(origin) > longOrigin {
		return false, nil
	}
	if known, ok := o.cache.get(origin); ok {
		return known, nil
	}
	registered, err := o.lookup(ctx, origin)
	if err == nil {
		o.cache.set(origin, registered)
	}
	return registered, err
}
