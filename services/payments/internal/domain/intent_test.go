package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// TestWhenAnIntentSucceeded checks that an intent has succeeded when the gateway captured the money, whenever that is read, but
// neither before it was created nor in the future.
func TestWhenAnIntentSucceeded(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 500, time.UTC)
	created := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		movements []domain.Movement
		want      time.Time
	}{
		"not reported":             {nil, now},
		"a while ago":              {[]domain.Movement{{Kind: domain.MovedRefund, At: now}, {Kind: domain.MovedCharge, At: now.Add(-time.Minute)}}, now.Add(-time.Minute)},
		"in the creation's second": {[]domain.Movement{{Kind: domain.MovedCharge, At: created.Truncate(time.Second)}}, created},
		"by a clock that is ahead": {[]domain.Movement{{Kind: domain.MovedCharge, At: now.Add(time.Second)}}, now},
	} {
		p := domain.Intent{Status: domain.Processing, CreatedAt: created}
		snapshot := domain.Snapshot{Status: domain.Succeeded, Movements: c.movements}
		p = p.Apply(snapshot, now)
		if p = p.Apply(snapshot, now.Add(time.Hour)); p.SucceededAt == nil || !p.SucceededAt.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, p.SucceededAt, c.want)
		}
	}
}
