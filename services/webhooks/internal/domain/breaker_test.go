package domain_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

func delivery(n byte) domain.DeliveryID {
	return ids.FromUUID[domain.DeliveryPrefix]([16]byte{15: n})
}

// failing returns a breaker after a failure of another delivery at each of these times after noon.
func failing(after ...time.Duration) domain.Breaker {
	var b domain.Breaker
	for i, d := range after {
		b = b.Fail(noon.Add(d), delivery(byte(i)))
	}
	return b
}

const s = time.Second

func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		after []time.Duration
		opens bool
	}{
		{"none", nil, false},
		{"one", []time.Duration{0}, false},
		{"four at once", []time.Duration{0, 0, 0, 0}, false},
		{"five at once", []time.Duration{0, 0, 0, 0, 0}, true},
		{"five in just under 10 s", []time.Duration{0, s, 2 * s, 3 * s, 10*s - 1}, true},
		{"five in 10 s", []time.Duration{0, s, 2 * s, 3 * s, 10 * s}, false},
		{"five in 12 s", []time.Duration{0, 3 * s, 6 * s, 9 * s, 12 * s}, false},
		{"one each 3 s for long", []time.Duration{0, 3 * s, 6 * s, 9 * s, 12 * s, 15 * s, 18 * s, 21 * s}, false},
		{"the last five of six within 10 s", []time.Duration{0, 3 * s, 6 * s, 9 * s, 11 * s, 12 * s}, true},
		{"clocks that differ", []time.Duration{s, 0, s, 0, s}, true},
	} {
		b := failing(tc.after...)
		if len(tc.after) == 0 {
			if b.Open(noon) || b.Probing() || !b.Closed() {
				t.Errorf("%s: %+v", tc.name, b)
			}
			continue
		}
		last := noon.Add(tc.after[len(tc.after)-1])
		if b.Open(last) != tc.opens || b.Probing() != tc.opens || b.Closed() {
			t.Errorf("%s: open %v, probing %v, closed %v; want open %v", tc.name, b.Open(last), b.Probing(), b.Closed(), tc.opens)
		}
		if tc.opens && (!b.Open(last.Add(30*s-1)) || b.Open(last.Add(30*s))) {
			t.Errorf("%s: deferred until %v", tc.name, b.DeferredUntil)
		}
	}
}

func TestBreakerCountsADeliveryOnce(t *testing.T) {
	t.Parallel()
	var b domain.Breaker
	for i := range 100 {
		b = b.Fail(noon.Add(time.Duration(i)*time.Millisecond), delivery(byte(i%4)))
	}
	if b.Open(noon.Add(s)) || len(b.Failed) != 4 || len(b.FailedAt) != 4 {
		t.Fatalf("100 failures of four deliveries: %+v", b)
	}
	if b = b.Fail(noon.Add(s), delivery(9)); !b.Open(noon.Add(s)) {
		t.Fatalf("and one of a fifth: %+v", b)
	}
}

func TestBreakerDoubles(t *testing.T) {
	t.Parallel()
	now := noon
	b := failing(0, 0, 0, 0, 0)
	for i, want := range []time.Duration{30 * s, 60 * s, 120 * s, 240 * s, 300 * s, 300 * s, 300 * s} {
		if got := b.DeferredUntil.Sub(now); got != want || b.Deferrals != i+1 {
			t.Fatalf("deferral %d is of %v, %d; want %v", i+1, got, b.Deferrals, want)
		}
		now = b.DeferredUntil.Add(time.Duration(i) * time.Minute) // the probe can be late
		if b.Open(now) || !b.Probing() {
			t.Fatalf("after deferral %d: open %v, probing %v", i+1, b.Open(now), b.Probing())
		}
		b = b.Fail(now, delivery(byte(i)))
	}
	for range 1000 { // the doubling never exceeds the limit
		now = *b.DeferredUntil
		if b = b.Fail(now, delivery(1)); b.DeferredUntil.Sub(now) != 300*s {
			t.Fatalf("deferral %d is of %v", b.Deferrals, b.DeferredUntil.Sub(now))
		}
	}
	if closed := (domain.Breaker{}); !closed.Closed() || closed.Probing() || closed.Fail(now, delivery(1)).Open(now) {
		t.Error("a success does not close it")
	}
}

// Failures of attempts in flight and of later attempts change nothing while first attempts are deferred.
func TestBreakerIsNotProlongedWhileOpen(t *testing.T) {
	t.Parallel()
	b := failing(0, 0, 0, 0, 0)
	open := b
	for i := range 30 {
		b = b.Fail(noon.Add(time.Duration(i)*s), delivery(byte(i)))
	}
	if !reflect.DeepEqual(b, open) {
		t.Fatalf("%+v, want %+v", b, open)
	}
	if b = b.Fail(noon.Add(30*s), delivery(1)); b.DeferredUntil.Sub(noon) != 90*s {
		t.Fatalf("the probe's failure defers until %v after noon", b.DeferredUntil.Sub(noon))
	}
}

type fault struct {
	at time.Time
	id domain.DeliveryID
}

// differing returns how many deliveries failed within the window that ends with the last fault.
func differing(past []fault) int {
	seen := map[domain.DeliveryID]bool{}
	for _, f := range past {
		if past[len(past)-1].at.Sub(f.at) < 10*s {
			seen[f.id] = true
		}
	}
	return len(seen)
}

func TestBreakerOpensAtFiveOfTenSeconds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b domain.Breaker
		var past []fault
		now := noon
		for range 60 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*s)).Draw(t, "pause")))
			past = append(past, fault{now, delivery(rapid.Byte().Draw(t, "delivery") % 8)})
			b = b.Fail(now, past[len(past)-1].id)
			if want := differing(past) >= 5; b.Open(now) != want {
				t.Fatalf("open %v after %d different ones", b.Open(now), differing(past))
			}
			if b.Open(now) {
				return
			}
			if len(b.Failed) > 4 || len(b.Failed) != len(b.FailedAt) || !slices.IsSortedFunc(b.FailedAt, time.Time.Compare) {
				t.Fatalf("%+v", b)
			}
		}
	})
}
