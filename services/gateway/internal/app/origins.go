package app

import (
	"context"
	"time"
)

// Origins caches which browser origins apps have registered.
type Origins struct {
	lookup  func(ctx context.Context, origin string) (bool, error)
	cache   cache[string, bool]
	last    cache[string, bool] // the last known results, for rejected requests
	looking chan struct{}       // limits the lookups for rejected requests
}

const (
	originsTTL     = 10 * time.Second
	originsLast    = 24 * time.Hour
	originsSize    = 1000
	originsLooking = 4
	originWait     = 500 * time.Millisecond
	longOrigin     = 255 // bytes; no registered origin is longer
)

// NewOrigins creates an empty cache in front of lookup.
func NewOrigins(lookup func(ctx context.Context, origin string) (bool, error)) *Origins {
	return &Origins{
		lookup: lookup, cache: newCache[string, bool](originsSize, originsTTL, sinceWrite), last: newCache[string, bool](originsSize, originsLast, sinceWrite),
		looking: make(chan struct{}, originsLooking),
	}
}

// Known reports whether scripts of an origin may read the response to a rejected request. It looks up an unknown origin within half
// a second, with few lookups at a time, because many requests can be rejected. If the lookup fails, the last result of the past day
// applies.
func (o *Origins) Known(ctx context.Context, origin string) bool {
	select {
	case o.looking <- struct{}{}:
		defer func() { <-o.looking }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), originWait)
		defer cancel()
		if registered, err := o.Registered(ctx, origin); err == nil {
			return registered
		}
	default:
	}
	registered, _ := o.last.get(origin)
	return registered
}

// Note stores that the service allowed scripts of an origin to read a response.
func (o *Origins) Note(origin string) {
	if len(origin) <= longOrigin {
		o.last.set(origin, true)
	}
}

// Registered reports whether an app has registered an origin. The result is at most ten seconds old.
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
		o.last.set(origin, registered)
	}
	return registered, err
}
