package domain_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/services/webhooks/internal/domain"
)

// grain is how much later than it might a place may come free.
const grain = 10 * time.Millisecond

// begun is what was really begun, each time by itself.
type begun struct {
	at time.Time
	n  int
}

// within is how many were begun in the second that ends with now.
func within(log []begun, now time.Time) int {
	sum := 0
	for _, b := range log {
		if now.Sub(b.at) < time.Second {
			sum += b.n
		}
	}
	return sum
}

// roomAt is the first time from now on at which a second holds less than limit.
func roomAt(log []begun, now time.Time, limit int) time.Time {
	for _, b := range log {
		if within(log, now) < limit {
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
	rapid.Int64Range(0, 20_000),                   // about the grain
	rapid.Int64Range(0, 1_200_000),                // about the second
	rapid.SampledFrom([]int64{10_000, 1_000_000}), // just those
)

// walk begins at random times as many as Allowed says, or fewer, and calls see at each.
func walk(t *rapid.T, limit int, see func(p domain.RateWindow, log []begun, now time.Time)) {
	var p domain.RateWindow
	var log []begun
	now := noon
	greedy := rapid.Bool().Draw(t, "greedy")
	for range rapid.IntRange(1, 150).Draw(t, "turns") {
		now = now.Add(time.Duration(pause.Draw(t, "µs")) * time.Microsecond)
		see(p, log, now)
		n, _ := p.Allowed(now, limit)
		if !greedy {
			n = rapid.IntRange(0, min(n, 3)).Draw(t, "begun")
		}
		if p = p.Add(now, n); n > 0 {
			log = append(log, begun{now, n})
		}
		see(p, log, now)
	}
}

func TestPaceHoldsInEachSecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		walk(t, limit, func(p domain.RateWindow, log []begun, now time.Time) {
			real := within(log, now)
			if n, _ := p.Allowed(now, limit); real > limit || real+n > limit {
				t.Fatalf("%d begun within a second and %d more allowed, of %d", real, n, limit)
			}
		})
	})
}

// Nobody waits longer than the second asks for, up to the grain.
func TestPaceComesFreeInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		walk(t, limit, func(p domain.RateWindow, log []begun, now time.Time) {
			n, free := p.Allowed(now, limit)
			soonest := roomAt(log, now, limit)
			if free.Before(soonest) || free.After(soonest.Add(grain)) {
				t.Fatalf("free %v from now, there is room %v from now", free.Sub(now), soonest.Sub(now))
			}
			if n > 0 {
				return
			}
			if at, _ := p.Allowed(free, limit); at <= 0 {
				t.Fatalf("%d allowed at free, %v from now", at, free.Sub(now))
			}
			if before, _ := p.Allowed(free.Add(-1), limit); before > 0 {
				t.Fatalf("%d allowed before free, %v from now", before, free.Sub(now))
			}
		})
	})
}

// The limit may be lowered at any time; what was begun before counts.
func TestPaceWhenTheLimitWasLowered(t *testing.T) {
	t.Parallel()
	var p domain.RateWindow
	for i := range 10 {
		p = p.Add(noon.Add(time.Duration(i)*50*time.Millisecond), 10)
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
		if n, free := p.Allowed(now, tc.limit); n != tc.n || free.Sub(noon) != tc.free {
			t.Errorf("of %d: %d, free %v after noon; want %d, %v", tc.limit, n, free.Sub(noon), tc.n, tc.free)
		}
	}
}

func TestPaceListStaysShort(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{200 * time.Microsecond, time.Millisecond, grain - 1, grain, grain + 1, 25 * time.Millisecond} {
		var p domain.RateWindow
		longest, total := 0, 0
		for at := time.Duration(0); at < 3*time.Second; at += every {
			n, _ := p.Allowed(noon.Add(at), 5000)
			if n > 0 {
				p = p.Add(noon.Add(at), 1)
				total++
			}
			longest = max(longest, len(p.At))
		}
		if longest >= 110 || len(p.At) != len(p.Started) {
			t.Errorf("each %v: %d entries", every, longest)
		}
		if want := int(3 * time.Second / every); total < want*99/100 {
			t.Errorf("each %v: %d of %d were begun, under a limit of 5000", every, total, want)
		}
		if p = p.Add(noon.Add(time.Minute), 0); len(p.At) != 0 {
			t.Errorf("each %v: %d entries a minute later", every, len(p.At))
		}
	}
}

// Processes' clocks differ: that one is behind neither lets more through nor makes the list long.
func TestPaceOfTwoClocks(t *testing.T) {
	t.Parallel()
	var p domain.RateWindow
	const behind = 40 * time.Millisecond
	total := 0
	for i := range 2000 {
		now := noon.Add(time.Duration(i) * 400 * time.Microsecond)
		if i%2 == 1 {
			now = now.Add(-behind)
		}
		n, _ := p.Allowed(now, 1000)
		p = p.Add(now, min(n, 1))
		total += min(n, 1)
		if len(p.At) >= 110 || !slices.IsSortedFunc(p.At, time.Time.Compare) {
			t.Fatalf("%d entries, or out of order, after %d", len(p.At), i)
		}
	}
	if total != 1000 {
		t.Errorf("%d begun in 0.8 s, of 1000 in a second", total)
	}
}

// A clock that is an hour ahead holds nobody back for an hour.
func TestPaceOfAWrongClock(t *testing.T) {
	t.Parallel()
	p := domain.RateWindow{}.Add(noon, 3).Add(noon.Add(time.Hour), 10)
	if n, _ := p.Allowed(noon.Add(time.Millisecond), 10); n != 10 {
		t.Errorf("%d allowed", n)
	}
	p = p.Add(noon.Add(time.Millisecond), 10)
	if n, free := p.Allowed(noon.Add(2*time.Millisecond), 10); n != 0 || free.Sub(noon) != 1001*time.Millisecond {
		t.Errorf("%d allowed, free %v after noon", n, free.Sub(noon))
	}
}

func TestPaceForgetsAfterASecond(t *testing.T) {
	t.Parallel()
	p := domain.RateWindow{}.Add(noon, 5).Add(noon.Add(500*time.Millisecond), 5)
	for after, want := range map[time.Duration]int{500 * time.Millisecond: 10, time.Second - 1: 10, time.Second: 15, 1500*time.Millisecond - 1: 15, 1500 * time.Millisecond: 20} {
		if n, _ := p.Allowed(noon.Add(after), 20); n != want {
			t.Errorf("%d allowed %v after noon, want %d", n, after, want)
		}
	}
}
