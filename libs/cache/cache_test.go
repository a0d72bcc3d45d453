package cache_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/cache"
)

type key struct {
	tenant  string
	version int
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := cache.New[key, string](cache.Options[string]{Size: 10})
	if value, ok := c.Get(key{"a", 1}); ok || value != "" {
		t.Errorf("empty: %q %v", value, ok)
	}
	c.Set(key{"a", 1}, "one")
	if value, ok := c.Get(key{"a", 1}); !ok || value != "one" {
		t.Errorf("set: %q %v", value, ok)
	}
	if _, ok := c.Get(key{"a", 2}); ok {
		t.Error("another version has the value")
	}
	if value := c.Add(key{"a", 1}, "two"); value != "one" {
		t.Errorf("add to a value: %q", value)
	}
	if value := c.Add(key{"b", 1}, "two"); value != "two" {
		t.Errorf("add: %q", value)
	}
	c.Delete(key{"a", 1})
	if _, ok := c.Get(key{"a", 1}); ok {
		t.Error("the deleted value is there")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	count := func(o cache.Options[int]) (left int) {
		c := cache.New[int, int](o)
		for i := range 10_000 {
			c.Set(i, i)
		}
		deadline := time.Now().Add(30 * time.Second) // values above the bound are deleted soon, not at once
		for left = 10_000; left > 100 && time.Now().Before(deadline); {
			left = 0
			for i := range 10_000 {
				if _, ok := c.Get(i); ok {
					left++
				}
			}
		}
		return left
	}
	if left := count(cache.Options[int]{Size: 100}); left == 0 || left > 100 {
		t.Errorf("%d values", left)
	}
	if left := count(cache.Options[int]{Size: 500, Weight: func(int) uint32 { return 10 }}); left == 0 || left > 50 {
		t.Errorf("%d values of weight 10", left)
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()
	forever, brief := cache.New[string](cache.Options[int]{Size: 10}), cache.New[string](cache.Options[int]{Size: 10, TTL: time.Millisecond})
	forever.Set("a", 1)
	brief.Set("a", 1)
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, ok := brief.Get("a"); !ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not expired")
		}
	}
	if _, ok := forever.Get("a"); !ok {
		t.Error("expired without a TTL")
	}
}
