package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// TestRetryOfAnEvent checks that an event is retried after a pause that doubles each time, up to five minutes. After a day it is
// retried once an hour, and after three days no more. If the keys are refused, the pause grows to an hour.
func TestRetryOfAnEvent(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, c := range []struct {
		age     time.Duration
		tries   int
		refused bool
		want    time.Duration // 0: given up
	}{
		{0, 0, false, time.Second},
		{0, 3, false, 8 * time.Second},
		{0, 50, false, 5 * time.Minute},
		{0, 10, true, 1024 * time.Second},
		{0, 50, true, time.Hour},
		{day - 1, 50, false, 5 * time.Minute},
		{day, 0, false, time.Hour},
		{3*day - 1, 0, false, time.Hour},
		{3 * day, 0, false, 0},
	} {
		at := domain.Event{ReceivedAt: now.Add(-c.age), Tries: c.tries}.Retry(now, c.refused)
		if c.want == 0 {
			if at != nil {
				t.Errorf("%+v: at %v", c, at)
			}
			continue
		}
		if at == nil || at.Sub(now) != c.want {
			t.Errorf("%+v: at %v", c, at)
		}
	}
}

func TestForeignEvent(t *testing.T) {
	t.Parallel()
	e := domain.Event{ReceivedAt: time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)}
	if at := e.ReceivedAt.Add(time.Hour); e.Foreign(at.Add(-1)) || !e.Foreign(at) {
		t.Error("an event is foreign after an hour, not before")
	}
}
