package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/services/console/internal/domain"
)

func TestStarted(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 5, 1, 20, 0, 0, 0, zone) // May 2 in UTC
	for _, c := range []struct {
		booking domain.Object
		want    bool
	}{
		{domain.Object{"starts_at": "2030-05-02T00:00:00Z", "event_local_date": "2030-05-01"}, true},
		{domain.Object{"starts_at": "2030-05-02T00:00:01Z", "event_local_date": "2030-05-01"}, false},
		{domain.Object{"starts_at": nil, "event_local_date": "2030-05-01"}, true},
		{domain.Object{"starts_at": nil, "event_local_date": "2030-05-02"}, false},
	} {
		if got := domain.Started(c.booking, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.booking, got, c.want)
		}
	}
}
