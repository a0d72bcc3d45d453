package lease_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/lease"
)

// The numbers of attempts only increase. The first attempt sets Since, and the last one sets Until.
func TestLease(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	taken := lease.Lease{Attempt: 7}.Take(at(0), 30*time.Second)
	for name, c := range map[string]struct {
		l            lease.Lease
		attempt      int
		since, until int // seconds after the start; -1: not running
	}{
		"never taken":     {lease.Lease{}, 0, -1, -1},
		"taken first":     {lease.Lease{}.Take(at(5), time.Second), 1, 5, 6},
		"taken":           {taken, 8, 0, 30},
		"taken over":      {taken.Take(at(40), time.Minute), 9, 0, 100},
		"renewed":         {taken.Renew(at(20), 30*time.Second), 8, 0, 50},
		"left early":      {taken.Renew(at(1), time.Second), 8, 0, 2},
		"ended":           {taken.End(), 8, -1, -1},
		"taken once more": {taken.End().Take(at(90), time.Second), 9, 90, 91},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underWay := c.until >= 0
			if c.l.Attempt != c.attempt || c.l.UnderWay() != underWay {
				t.Fatalf("%+v", c.l)
			}
			if !underWay {
				if c.l.Since != nil || c.l.Held(at(0)) {
					t.Errorf("held since %v", c.l.Since)
				}
				return
			}
			if !c.l.Since.Equal(at(c.since)) || !c.l.Until.Equal(at(c.until)) {
				t.Errorf("since %v until %v", c.l.Since, c.l.Until)
			}
			if !c.l.Held(at(c.until).Add(-1)) || c.l.Held(at(c.until)) {
				t.Error("held for another time than until its end")
			}
		})
	}
}

// An attempt is the current one until another one follows or the operation ends.
func TestLeaseOfTheCurrentAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	first := lease.Lease{}.Take(now, time.Second)
	for name, c := range map[string]struct {
		l    lease.Lease
		want bool
	}{
		"itself":     {first, true},
		"renewed":    {first.Renew(now, time.Hour), true},
		"taken over": {first.Take(now, time.Second), false},
		"ended":      {first.End(), false},
	} {
		if got := c.l.Is(first); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := c.l.Holds(first); got != (name == "itself") {
			t.Errorf("%s: holds it %v", name, got)
		}
	}
}

// A duration doubles up to the longest one, for any number of doublings.
func TestDoubled(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]time.Duration{
		0: 30 * time.Second, 1: time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 63: 10 * time.Minute, 1 << 40: 10 * time.Minute,
	} {
		if got := lease.Doubled(30*time.Second, times, 10*time.Minute); got != want {
			t.Errorf("%d times: %v, want %v", times, got, want)
		}
	}
}
