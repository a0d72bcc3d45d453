package domain_test

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	second = int64(1_000_000)
	minute = 60 * second
)

// reach returns a window after a random history, and its time.
func reach(t *rapid.T, l domain.Limit) (domain.Window, int64) {
	now := rapid.Int64Range(1, 1<<50).Draw(t, "start")
	var w domain.Window
	for range rapid.IntRange(1, 12).Draw(t, "bursts") {
		now += rapid.OneOf(rapid.Int64Range(0, second), rapid.Int64Range(0, 3*minute), rapid.Just(minute)).Draw(t, "pause")
		for range rapid.Int64Range(0, 2*l.Max).Draw(t, "requests") {
			w, _ = l.Take(w, now)
		}
	}
	return w, now
}

func TestRetryAfterIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := domain.Limit{Max: rapid.Int64Range(1, 50).Draw(t, "limit"), Per: minute}
		w, now := reach(t, l)
		r := l.Rate(w, now)
		_, ok := l.Take(w, now)
		if ok != (r.RetryAfter == 0) || ok != (r.Remaining > 0) {
			t.Fatalf("take %v, but %+v", ok, r)
		}
		if ok {
			return
		}
		if _, ok := l.Take(w, now+r.RetryAfter*second); !ok {
			t.Fatalf("refused after Retry-After %d: %+v at %d", r.RetryAfter, w, now)
		}
		if r.RetryAfter > 1 {
			if _, ok := l.Take(w, now+(r.RetryAfter-1)*second); ok {
				t.Fatalf("passes a second before Retry-After %d: %+v at %d", r.RetryAfter, w, now)
			}
		}
	})
}

func TestRetryAfterWhenTheLimitWasLowered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := reach(t, domain.Limit{Max: 50, Per: minute})
		l := domain.Limit{Max: rapid.Int64Range(1, 49).Draw(t, "lowered"), Per: minute}
		if _, ok := l.Take(w, now+l.Rate(w, now).RetryAfter*second); !ok {
			t.Fatalf("refused after Retry-After: %+v at %d", w, now)
		}
	})
}

// For any client, no period of one window's length allows more than twice the limit. An idle credential gets exactly the limit in
// its first window, regardless of its speed.
func TestLimitHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := domain.Limit{Max: rapid.Int64Range(1, 30).Draw(t, "limit"), Per: minute}
		var w domain.Window
		var passed []int64
		start := rapid.Int64Range(1, 1<<50).Draw(t, "start")
		now := start
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			var ok bool
			if w, ok = l.Take(w, now); ok {
				passed = append(passed, now)
			}
			now += rapid.Int64Range(0, 4*second).Draw(t, "pause")
		}
		first := int64(0)
		for i, at := range passed {
			if at < start+minute {
				first++
			}
			in := int64(0)
			for _, other := range passed[i:] {
				if other < at+minute {
					in++
				}
			}
			if in >= 2*l.Max && l.Max > 1 {
				t.Fatalf("%d passed within a minute of a limit of %d", in, l.Max)
			}
		}
		if first > l.Max {
			t.Fatalf("%d passed in the first minute of a limit of %d", first, l.Max)
		}
	})
}

func TestRequestOverTheLimit(t *testing.T) {
	t.Parallel()
	l := domain.Limit{Max: 600, Per: minute}
	var w domain.Window
	now := int64(1)
	for i := range 600 {
		var ok bool
		if w, ok = l.Take(w, now); !ok {
			t.Fatalf("request %d refused", i+1)
		}
		now += 99_000 // 600 requests in 59.4 s
	}
	if _, ok := l.Take(w, minute); ok {
		t.Error("the 601st passes within the minute of the first")
	}
	if r := l.Rate(w, minute); r.Remaining != 0 || r.Reset != 1 || r.RetryAfter != 1 {
		t.Errorf("rate %+v", r)
	}
	if _, ok := l.Take(w, minute+2); !ok {
		t.Error("still refused when the window has ended and begun to fade")
	}
}

func TestRateOfAFreshCredential(t *testing.T) {
	t.Parallel()
	l := domain.Limit{Max: 600, Per: minute}
	w, _ := l.Take(domain.Window{}, 5*minute)
	if got := l.Rate(w, 5*minute); got != (domain.Rate{Limit: 600, Remaining: 599, Reset: 60}) {
		t.Errorf("rate %+v", got)
	}
}
