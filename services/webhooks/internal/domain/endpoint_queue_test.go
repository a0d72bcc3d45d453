package domain_test

import (
	"cmp"
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

// endpointKey returns a key whose ids have one byte each.
func endpointKey(tenant byte, live bool, endpoint byte) domain.EndpointKey {
	return domain.EndpointKey{
		Tenant: ids.FromUUID[ids.TenantPrefix]([16]byte{0: tenant}), Livemode: live,
		Endpoint: ids.FromUUID[domain.EndpointPrefix]([16]byte{15: endpoint}),
	}
}

func TestEndpointKeyCompare(t *testing.T) {
	t.Parallel()
	sorted := []domain.EndpointKey{endpointKey(1, false, 1), endpointKey(1, false, 2), endpointKey(1, true, 0), endpointKey(1, true, 1), endpointKey(2, false, 0), endpointKey(0xff, true, 0xff)}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := a.Compare(b), cmp.Compare(i, j); got != want {
				t.Errorf("%v to %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

// probing returns a breaker whose deferral ended at noon.
func probing() domain.Breaker {
	return domain.Breaker{DeferredUntil: new(noon), Deferrals: 1}
}

func TestAllowance(t *testing.T) {
	t.Parallel()
	window := func(n int) domain.RateWindow { return domain.RateWindow{}.Add(noon, n) }
	for _, tc := range []struct {
		name     string
		inFlight int
		window   domain.RateWindow
		breaker  domain.Breaker
		after    time.Duration
		want     domain.Allowance
	}{
		{"idle", 0, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{Max: 10, FirstAttempts: true, ConcurrencyBound: true}},
		{"some in flight", 7, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{Max: 3, FirstAttempts: true, ConcurrencyBound: true}},
		{"at the limit", 10, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"above the limit, which was lowered", 15, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"the rate allows less", 0, window(15), domain.Breaker{}, 0, domain.Allowance{Max: 5, FirstAttempts: true}},
		{"the rate allows as much", 5, window(15), domain.Breaker{}, 0, domain.Allowance{Max: 5, FirstAttempts: true, ConcurrencyBound: true}},
		{"the rate allows none", 0, window(20), domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true}},
		{"a second later", 0, window(20), domain.Breaker{}, time.Second, domain.Allowance{Max: 10, FirstAttempts: true, ConcurrencyBound: true}},
		{"deferred", 0, domain.RateWindow{}, probing(), -1, domain.Allowance{Max: 1, ConcurrencyBound: true}},
		{"probing", 0, domain.RateWindow{}, probing(), 0, domain.Allowance{Max: 1, FirstAttempts: true, ConcurrencyBound: true}},
		{"a probe is in flight", 1, domain.RateWindow{}, probing(), 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"attempts from before are in flight", 9, domain.RateWindow{}, probing(), 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"failing, not yet deferred", 2, domain.RateWindow{}, failing(0, 0, 0, 0), 0, domain.Allowance{Max: 8, FirstAttempts: true, ConcurrencyBound: true}},
	} {
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: tc.inFlight, RateWindow: tc.window, Breaker: tc.breaker}
		if got := l.Allowance(noon.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		slow := l
		slow.Speed = domain.Slow
		if got := slow.Allowance(noon.Add(tc.after)); got != tc.want {
			t.Errorf("%s, slow: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// An endpoint that has not responded yet has few attempts in flight.
func TestAllowanceOfUnknownSpeed(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[int]int{0: domain.UnknownMaxInFlight, 3: domain.UnknownMaxInFlight - 3, domain.UnknownMaxInFlight: 0, 10: 0} {
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: inFlight, Speed: domain.Unknown}
		if got := l.Allowance(noon); got != (domain.Allowance{Max: want, FirstAttempts: true, ConcurrencyBound: true}) {
			t.Errorf("with %d in flight: %+v, want %d", inFlight, got, want)
		}
	}
	l := domain.EndpointQueue{MaxInFlight: 2, MaxPerSecond: 20, Speed: domain.Unknown}
	if got := l.Allowance(noon); got.Max != 2 {
		t.Errorf("an endpoint with max_in_flight 2 may have %d", got.Max)
	}
}

func TestAfterStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		inFlight  int
		before    int // started at noon
		n         int
		notBefore time.Duration // after the pass, which is 100 ms after noon
		atLimit   bool
	}{
		{"fewer were due", 0, 0, 3, 0, false},
		{"none was due", 0, 0, 0, 0, false},
		{"the limit is reached", 0, 0, 10, time.Second, true},
		{"the limit was reached before", 10, 0, 0, time.Second, true},
		{"the rate is used up", 0, 15, 5, 900 * time.Millisecond, false},
		{"the rate was used up before", 0, 20, 0, 900 * time.Millisecond, false},
		{"both are used up", 5, 15, 5, 900 * time.Millisecond, false},
		{"the limit and the rate were used up before", 10, 20, 0, 900 * time.Millisecond, false},
		{"fewer than the rate allows", 0, 15, 4, 0, false},
	} {
		now := noon.Add(100 * time.Millisecond)
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: tc.inFlight, RateWindow: domain.RateWindow{}.Add(noon, tc.before)}
		p, notBefore, atLimit := l.AfterStart(l.Allowance(now), now, tc.n)
		if notBefore.Sub(now) != tc.notBefore || atLimit != tc.atLimit {
			t.Errorf("%s: %v, at the limit %v; want %v, %v", tc.name, notBefore.Sub(now), atLimit, tc.notBefore, tc.atLimit)
		}
		if left, _ := p.Allowed(now, 20); left != 20-tc.before-tc.n {
			t.Errorf("%s: %d are left of the rate", tc.name, left)
		}
	}
}
