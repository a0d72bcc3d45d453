package domain_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/services/webhooks/internal/domain"
)

// resolution is how much later than necessary an attempt can be allowed.
const resolution = 10 * time.Millisecond

// start is a number of attempts that started at one time.
type start struct {
	at time.Time
	n  int
}

// startedWithin returns how many attempts started in the second that ends with now.
func startedWithin(log []start, now time.Time) int {
	sum := 0
	for _, b := range log {
		if now.Sub(b.at) < time.Second {
			sum += b.n
		}
	}
	return sum
}

// freeAt returns the first time from now on at which a second has fewer starts than limit.
func freeAt(log []start, now time.Time, limit int) time.Time {
	for _, b := range log {
		if startedWithin(log, now) < limit {
			break
		}
		if leaves := b.at.Add(time.Second); leaves.After(now) {
			now = leaves
		}
	}
	return now
}

var pause = rapid.OneOf(
	rapid.Int64Range(0, 3_000),                    // bursts
	rapid.Int64Range(0, 20_000),                   // about the resolution
	rapid.Int64Range(0, 1_200_000),                // about the second
	rapid.SampledFrom([]int64{10_000, 1_000_000}), // exactly these
)

// simulate starts as many attempts as Allowed returns, or fewer, at random times, and calls check before and after each start.
func simulate(t *rapid.T, limit int, check func(w domain.RateWindow, log []start, now time.Time)) {
	var w domain.RateWindow
	var log []start
	now := noon
	greedy := rapid.Bool().Draw(t, "greedy")
	for range rapid.IntRange(1, 150).Draw(t, "passes") {
		now = now.Add(time.Duration(pause.Draw(t, "µs")) * time.Microsecond)
		check(w, log, now)
		n, _ := w.Allowed(now, limit)
		if !greedy {
			n = rapid.IntRange(0, min(n, 3)).Draw(t, "started")
		}
		if w = w.Add(now, n); n > 0 {
			log = append(log, start{now, n})
		}
		check(w, log, now)
	}
}

func TestRateWindowHoldsInEachSecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		simulate(t, limit, func(w domain.RateWindow, log []start, now time.Time) {
			real := startedWithin(log, now)
			if n, _ := w.Allowed(now, limit); real > limit || real+n > limit {
				t.Fatalf("%d started within a second and %d more allowed, of %d", real, n, limit)
			}
		})
	})
}

// An attempt waits no longer than necessary, up to the resolution.
func TestRateWindowAllowsInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		simulate(t, limit, func(w domain.RateWindow, log []start, now time.Time) {
			n, free := w.Allowed(now, limit)
			soonest := freeAt(log, now, limit)
			if free.Before(soonest) || free.After(soonest.Add(resolution)) {
				t.Fatalf("free %v from now, want %v from now", free.Sub(now), soonest.Sub(now))
			}
			if n > 0 {
				return
			}
			if at, _ := w.Allowed(free, limit); at <= 0 {
				t.Fatalf("%d allowed at free, %v from now", at, free.Sub(now))
			}
			if before, _ := w.Allowed(free.Add(-1), limit); before > 0 {
				t.Fatalf("%d allowed before free, %v from now", before, free.Sub(now))
			}
		})
	})
}

// The limit can be lowered at any time. Attempts that started before still count.
func TestRateWindowWhenTheLimitWasLowered(t *testing.T) {
	t.Parallel()
	var w domain.RateWindow
	for i := range 10 {
		w = w.Add(noon.Add(time.Duration(i)*50*time.Millisecond), 10)
	}
	now := noon.Add(500 * time.Millisecond)
	for _, tc := range []struct {
		limit, n int
		free     time.Duration // after noon
	}{
		{101, 1, 500 * time.Millisecond},
		{100, 0, time.Second},
		{91, 0, time.Second},
		{90, 0, 1050 * time.Millisecond},
		{50, 0, 1250 * time.Millisecond},
		{1, 0, 1450 * time.Millisecond},
	} {
		if n, free := w.Allowed(now, tc.limit); n != tc.n || free.Sub(noon) != tc.free {
			t.Errorf("of %d: %d, free %v after noon; want %d, %v", tc.limit, n, free.Sub(noon), tc.n, tc.free)
		}
	}
}

func TestRateWindowStaysShort(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{200 * time.Microsecond, time.Millisecond, resolution - 1, resolution, resolution + 1, 25 * time.Millisecond} {
		var w domain.RateWindow
		longest, total := 0, 0
		for at := time.Duration(0); at < 3*time.Second; at += every {
			n, _ := w.Allowed(noon.Add(at), 5000)
			if n > 0 {
				w = w.Add(noon.Add(at), 1)
				total++
			}
			longest = max(longest, len(w.At))
		}
		if longest >= 110 || len(w.At) != len(w.Started) {
			t.Errorf("each %v: %d entries", every, longest)
		}
		if want := int(3 * time.Second / every); total < want*99/100 {
			t.Errorf("each %v: %d of %d have started, under a limit of 5000", every, total, want)
		}
		if w = w.Add(noon.Add(time.Minute), 0); len(w.At) != 0 {
			t.Errorf("each %v: %d entries a minute later", every, len(w.At))
		}
	}
}

// The clocks of processes differ. A clock that is behind neither allows more attempts nor makes the list long.
func TestRateWindowOfTwoClocks(t *testing.T) {
	t.Parallel()
	var w domain.RateWindow
	const behind = 40 * time.Millisecond
	total := 0
	for i := range 2000 {
		now := noon.Add(time.Duration(i) * 400 * time.Microsecond)
		if i%2 == 1 {
			now = now.Add(-behind)
		}
		n, _ := w.Allowed(now, 1000)
		w = w.Add(now, min(n, 1))
		total += min(n, 1)
		if len(w.At) >= 110 || !slices.IsSortedFunc(w.At, time.Time.Compare) {
			t.Fatalf("%d entries, or out of order, after %d", len(w.At), i)
		}
	}
	if total != 1000 {
		t.Errorf("%d started in 0.8 s, of 1000 in a second", total)
	}
}

// A clock that is an hour ahead does not defer attempts for an hour.
func TestRateWindowOfAWrongClock(t *testing.T) {
	t.Parallel()
	w := domain.RateWindow{}.Add(noon, 3).Add(noon.Add(time.Hour), 10)
	if n, _ := w.Allowed(noon.Add(time.Millisecond), 10); n != 10 {
		t.Errorf("%d allowed", n)
	}
	w = w.Add(noon.Add(time.Millisecond), 10)
	if n, free := w.Allowed(noon.Add(2*time.Millisecond), 10); n != 0 || free.Sub(noon) != 1001*time.Millisecond {
		t.Errorf("%d allowed, free %v after noon", n, free.Sub(noon))
	}
}

func TestRateWindowForgetsAfterASecond(t *testing.T) {
	t.Parallel()
	w := domain.RateWindow{}.Add(noon, 5).Add(noon.Add(500*time.Millisecond), 5)
	for after, want := range map[time.Duration]int{500 * time.Millisecond: 10, time.Second - 1: 10, time.Second: 15, 1500*time.Millisecond - 1: 15, 1500 * time.Millisecond: 20} {
		if n, _ := w.Allowed(noon.Add(after), 20); n != want {
			t.Errorf("%d allowed %v after noon, want %d", n, after, want)
		}
	}
}
