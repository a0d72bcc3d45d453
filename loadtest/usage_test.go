package main

import (
	"slices"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	before := usage{"postgres": time.Second, "redis": 2 * time.Second}
	after := usage{"postgres": 3 * time.Second, "redis": 2*time.Second + time.Millisecond, "kafka": 500 * time.Millisecond}
	delta := after.since(before)
	if got := delta.per(1000); got != "postgres 2000, kafka 500, redis 1" {
		t.Errorf("per request: %s", got)
	}
	if got := delta.plus(delta).per(4000); got != "postgres 1000, kafka 250, redis 0" && got != "postgres 1000, kafka 250, redis 1" {
		t.Errorf("two slices: %s", got)
	}
	if got := delta.times(0.5).per(500); got != "postgres 2000, kafka 500, redis 1" {
		t.Errorf("half of it for half of the requests: %s", got)
	}
	if got := (usage{}).plus(delta).per(0); got != "" {
		t.Errorf("without requests: %q", got)
	}
}

// TestUsageOfThePlatform checks that the load generator, the simulation of Stripe and added processes do not count, and
// that the time after a commit is that of Kafka, of the readers, and of their databases.
func TestUsageOfThePlatform(t *testing.T) {
	t.Parallel()
	used := usage{
		"loadtest": 1000, "stripe": 2000, added("nginx"): 4000, "kafka": 1, "gateway": 2, "bookings": 4, "customers": 8, "webhooks": 16, postgres: 32,
		ofService("bookings"): 64, ofService("customers"): 128, ofService("webhooks"): 256,
	}
	if got := used.platform(); got != 511 {
		t.Errorf("all: %d", got)
	}
	if got := used.platform("kafka"); got != 510 {
		t.Errorf("all except Kafka: %d", got)
	}
	if got := used.afterCommit(); got != 1+8+16+128+256 {
		t.Errorf("after the commit: %d", got)
	}
	if got := readers(); !slices.Equal(got, []string{"identity", "customers", "payments", "webhooks"}) {
		t.Errorf("readers: %v", got)
	}
	if got := perRequest(3*time.Second, 1000).String(); got != "3.00 ms" {
		t.Error(got)
	}
}
