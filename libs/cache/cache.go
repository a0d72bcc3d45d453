// Package cache contains a cache in memory.
package cache

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// Cache stores the most used values. New creates one. Its methods can be called in parallel.
type Cache[K comparable, V any] struct {
	entries entries
}

// entries is a cache of otter. As an interface, it hides otter's types: a package that can reach them compiles all of otter again.
type entries interface {
	GetIfPresent(key any) (value any, ok bool)
	Set(key, value any) (any, bool)
	SetIfAbsent(key, value any) (current any, set bool)
	Invalidate(key any) (any, bool)
}

// Options bounds a cache.
type Options[V any] struct {
	Size   int                  // number of values; with Weight, sum of their weights
	Weight func(value V) uint32 // nil: 1
	TTL    time.Duration        // from the time of writing; 0: no limit
}

// New creates an empty cache.
func New[K comparable, V any](o Options[V]) Cache[K, V] {
	var weight func(any) uint32
	if o.Weight != nil {
		weight = func(value any) uint32 { return o.Weight(value.(V)) }
	}
	return Cache[K, V]{open(o.Size, weight, o.TTL)}
}

func open(size int, weight func(any) uint32, ttl time.Duration) entries {
	options := &otter.Options[any, any]{MaximumSize: size}
	if weight != nil {
		options = &otter.Options[any, any]{MaximumWeight: uint64(size), Weigher: func(_, value any) uint32 { return weight(value) }}
	}
	if ttl > 0 {
		options.ExpiryCalculator = otter.ExpiryWriting[any, any](ttl)
	}
	return otter.Must(options)
}

// Get returns the value of key, and false if there is none.
func (c Cache[K, V]) Get(key K) (V, bool) {
	value, ok := c.entries.GetIfPresent(key)
	if !ok {
		var none V
		return none, false
	}
	return value.(V), true
}

// Set sets the value of key.
func (c Cache[K, V]) Set(key K, value V) {
	c.entries.Set(key, value)
}

// Add sets the value of key if there is none, and returns the current value.
func (c Cache[K, V]) Add(key K, value V) V {
	current, _ := c.entries.SetIfAbsent(key, value)
	return current.(V)
}

// Delete deletes the value of key.
func (c Cache[K, V]) Delete(key K) {
	c.entries.Invalidate(key)
}
