package app

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// cache stores the most used entries, each for a limited time. Its fields are functions, so that otter's types are not reachable
// from ours. Otherwise each package with a cache would compile all of otter again, which took more than a minute in three packages.
type cache[K comparable, V any] struct {
	get  func(K) (V, bool)
	set  func(K, V)
	add  func(K, V) V // sets the value if there is none, and returns the current value
	drop func(K)
}

// since specifies when the time of an entry begins.
type since bool

const (
	sinceWrite since = false
	sinceUse   since = true
)

// newCache is not inlined for the same reason.
//
//go:noinline
func newCache[K comparable, V any](size int, ttl time.Duration, from since) cache[K, V] {
	expiry := otter.ExpiryWriting[K, V](ttl)
	if from == sinceUse {
		expiry = otter.ExpiryAccessing[K, V](ttl)
	}
	c := otter.Must(&otter.Options[K, V]{MaximumSize: size, ExpiryCalculator: expiry})
	return cache[K, V]{
		get:  c.GetIfPresent,
		set:  func(k K, v V) { c.Set(k, v) },
		add:  func(k K, v V) V { there, _ := c.SetIfAbsent(k, v); return there },
		drop: func(k K) { c.Invalidate(k) },
	}
}
