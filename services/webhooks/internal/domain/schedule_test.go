package domain_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/services/webhooks/internal/domain"
)

// delays are the delays after the first failures, in minutes and without jitter. After each later failure it is 12 h.
var delays = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

func delayAfter(n int) time.Duration {
	if n > len(delays) {
		return 12 * time.Hour
	}
	return time.Duration(delays[n-1]) * time.Minute
}

func TestDelay(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 25; n++ {
		want := delayAfter(n)
		if got := domain.Delay(n, 0.5); got != want {
			t.Errorf("after failure %d: %v, want %v", n, got, want)
		}
		if got := domain.Delay(n, 0); got != want-want/10 {
			t.Errorf("after failure %d at the least: %v, want %v", n, got, want-want/10)
		}
		most := domain.Delay(n, math.Nextafter(1, 0))
		if most > want+want/10 || most < want+want/10-time.Millisecond {
			t.Errorf("after failure %d at the most: %v, want %v", n, most, want+want/10)
		}
	}
}

func TestDelayStaysWithinATenth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, jitter := rapid.IntRange(1, 1000).Draw(t, "n"), rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "jitter")
		d := delayAfter(n)
		if got := domain.Delay(n, jitter); got < d-d/10 || got > d+d/10 {
			t.Fatalf("after failure %d with %v: %v", n, jitter, got)
		}
	})
}

func TestNext(t *testing.T) {
	t.Parallel()
	const week, middle = 7 * 24 * time.Hour, 0.5
	for _, tc := range []struct {
		name       string
		age        time.Duration
		n          int
		retryAfter time.Duration
		want       time.Duration // 0: none
	}{
		{"the first", 0, 1, 0, time.Minute},
		{"the tenth", time.Hour, 10, 0, 512 * time.Minute},
		{"the 19th", 6 * 24 * time.Hour, 19, 0, 12 * time.Hour},
		{"the 20th", time.Hour, 20, 0, 0},
		{"the 21st", time.Hour, 21, 0, 0},
		{"just within the week", week - 12*time.Hour, 11, 0, 12 * time.Hour},
		{"just over the week", week - 12*time.Hour + 1, 11, 0, 0},
		{"over the week before", week + time.Hour, 1, 0, 0},
		{"Retry-After later", 0, 1, time.Hour, time.Hour},
		{"Retry-After a little later", 0, 1, time.Minute + time.Second, time.Minute + time.Second},
		{"Retry-After earlier", 0, 3, time.Second, 4 * time.Minute},
		{"Retry-After the same", 0, 1, time.Minute, time.Minute},
		{"Retry-After below zero", 0, 1, -time.Hour, time.Minute},
		{"Retry-After of 12 h", 0, 1, 12 * time.Hour, 12 * time.Hour},
		{"Retry-After above", 0, 1, 13 * time.Hour, 12 * time.Hour},
		{"Retry-After of years", 0, 1, math.MaxInt64, 12 * time.Hour},
		{"Retry-After over the week", week - time.Hour, 1, 2 * time.Hour, 0},
		{"Retry-After after the 20th", 0, 20, time.Minute, 0},
		{"created in the future", -time.Minute, 1, 0, time.Minute},
	} {
		next, again := domain.Next(noon.Add(-tc.age), noon, tc.n, tc.retryAfter, middle)
		if again != (tc.want != 0) || again && next.Sub(noon) != tc.want {
			t.Errorf("%s: %v from now, %v; want %v", tc.name, next.Sub(noon), again, tc.want)
		}
	}
}

// A delivery whose attempts all fail immediately is attempted 20 times or for a week, regardless of the jitter.
func TestNextEndsEachDelivery(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jitter := rapid.Float64Range(0, math.Nextafter(1, 0))
		now, n := noon, 1
		for ; n <= 30; n++ {
			next, again := domain.Next(noon, now, n, time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "retry after")), jitter.Draw(t, "jitter"))
			if !again {
				break
			}
			if next.Sub(now) < 54*time.Second || next.Sub(noon) > 7*24*time.Hour {
				t.Fatalf("attempt %d %v after the last, %v after the first", n+1, next.Sub(now), next.Sub(noon))
			}
			now = next
		}
		if n < 13 || n > 20 {
			t.Fatalf("%d attempts", n)
		}
	})
}
