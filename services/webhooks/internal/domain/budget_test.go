package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

// tenant returns a tenant whose id has one byte.
func tenant(n byte) ids.Tenant { return endpointKey(n, false, 0).Tenant }

func TestSpeed(t *testing.T) {
	t.Parallel()
	if got := domain.SpeedAt(nil, noon); got != domain.Unknown {
		t.Errorf("an endpoint that never responded is %v", got)
	}
	quick := domain.SlowUntil(nil, noon, domain.SlowAfter-1)
	if got := domain.SpeedAt(quick, noon); got != domain.Fast {
		t.Errorf("an endpoint that responded fast is %v", got)
	}
	slow := domain.SlowUntil(quick, noon, domain.SlowAfter)
	if until := domain.SlowUntil(slow, noon.Add(time.Second), 0); until != slow {
		t.Errorf("a fast response made the endpoint fast before the minute was over: %v", until)
	}
	for after, want := range map[time.Duration]domain.Speed{0: domain.Slow, domain.SlowFor - 1: domain.Slow, domain.SlowFor: domain.Fast} {
		if got := domain.SpeedAt(slow, noon.Add(after)); got != want {
			t.Errorf("%v after a slow response the endpoint is %v", after, got)
		}
	}
}

// Slow endpoints use up to a half and endpoints of unknown speed up to a quarter. The rest is left for fast ones.
func TestBudgetOfSpeeds(t *testing.T) {
	t.Parallel()
	b := domain.NewBudget(1024, 1024)
	take := func(s domain.Speed) (n int) {
		for i := 0; b.TryAcquire(tenant(byte(i%128)), s, 1); i++ {
			n++
		}
		return n
	}
	for _, tc := range []struct {
		speed domain.Speed
		want  int
	}{{domain.Slow, 512}, {domain.Unknown, 256}, {domain.Slow, 0}, {domain.Unknown, 0}, {domain.Fast, 249}} {
		if got := take(tc.speed); got != tc.want {
			t.Errorf("speed %v took %d, want %d", tc.speed, got, tc.want)
		}
	}
}

// Some capacity is left for one more tenant, regardless of how many tenants use their whole share.
func TestBudgetLeavesSomeForOneMoreTenant(t *testing.T) {
	t.Parallel()
	for _, tenants := range []byte{1, 7, 8, 16, 60} {
		b := domain.NewBudget(1024, 32)
		for took := true; took; {
			took = false
			for n := range tenants {
				took = b.TryAcquire(tenant(n), domain.Fast, 1) || took
			}
		}
		if left, want := b.Free(), 1024/(int(tenants)+1); left < want {
			t.Errorf("%d tenants leave %d, want %d", tenants, left, want)
		}
	}
}
