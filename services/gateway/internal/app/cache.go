package app

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// cache keeps the entries that are used most, each for a while. Its fields are functions so that no type of
// otter's is reachable from one of ours: each package that holds one would compile all of otter for itself,
// which took more than a minute in three of them.
type cache[K comparable, V any] struct {
	get  func(K) (V, bool)
	set  func(K, V)
	add  func(K, V) V // sets where nothing is, and returns what is there then
	drop func(K)
}

// What an entry's time begins with.
type since bool

const (
	sinceWrite since = false
	sinceUse   since = true
)

// newCache is not inlined for the same reason.
//
//go:noinline
func newCache[K comparable, V any](size int, keep time.Duration, from since) cache[K, V] {
	expiry := otter.ExpiryWriting[K, V](keep)
	if from == sinceUse {
		expiry = otter.ExpiryAccessing[K, V](keep)
	}
	c := otter.Must(&otter.Options[K, V]{MaximumSize: size, ExpiryCalculator: expiry})
	return cache[K, V]{
		get:  c.GetIfPresent,
		set:  func(k K, v V) { c.Set(k, v) },
		add:  func(k K, v V) V { there, _ := c.SetIfAbsent(k, v); return there },
		drop: func(k K) { c.Invalidate(k) },
	}
}
