package domain_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

func endpointKey(tenant byte, live bool, endpoint byte) domain.EndpointKey {
	return domain.EndpointKey{
		Tenant: ids.FromUUID[ids.TenantPrefix]([16]byte{0: tenant}), Livemode: live,
		Endpoint: ids.FromUUID[domain.EndpointPrefix]([16]byte{15: endpoint}),
	}
}

func TestLaneKeyCompare(t *testing.T) {
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

// probing is a breaker whose deferral ended at noon.
func probing() domain.Breaker {
	return domain.Breaker{DeferredUntil: new(noon), Deferrals: 1}
}

func TestLaneTurn(t *testing.T) {
	t.Parallel()
	paced := func(n int) domain.RateWindow { return domain.RateWindow{}.Add(noon, n) }
	for _, tc := range []struct {
		name     string
		inFlight int
		pace     domain.RateWindow
		breaker  domain.Breaker
		after    time.Duration
		want     domain.Allowance
	}{
		{"idle", 0, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{Max: 10, FirstAttempts: true, ConcurrencyBound: true}},
		{"some on their way", 7, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{Max: 3, FirstAttempts: true, ConcurrencyBound: true}},
		{"full", 10, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"over full, the bound was lowered", 15, domain.RateWindow{}, domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"the pace leaves less", 0, paced(15), domain.Breaker{}, 0, domain.Allowance{Max: 5, FirstAttempts: true}},
		{"the pace leaves as much", 5, paced(15), domain.Breaker{}, 0, domain.Allowance{Max: 5, FirstAttempts: true, ConcurrencyBound: true}},
		{"the pace leaves none", 0, paced(20), domain.Breaker{}, 0, domain.Allowance{FirstAttempts: true}},
		{"a second later", 0, paced(20), domain.Breaker{}, time.Second, domain.Allowance{Max: 10, FirstAttempts: true, ConcurrencyBound: true}},
		{"deferred", 0, domain.RateWindow{}, probing(), -1, domain.Allowance{Max: 1, ConcurrencyBound: true}},
		{"probing", 0, domain.RateWindow{}, probing(), 0, domain.Allowance{Max: 1, FirstAttempts: true, ConcurrencyBound: true}},
		{"a probe is on its way", 1, domain.RateWindow{}, probing(), 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"those from before are on their way", 9, domain.RateWindow{}, probing(), 0, domain.Allowance{FirstAttempts: true, ConcurrencyBound: true}},
		{"failing, not yet deferred", 2, domain.RateWindow{}, failing(0, 0, 0, 0), 0, domain.Allowance{Max: 8, FirstAttempts: true, ConcurrencyBound: true}},
	} {
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: tc.inFlight, RateWindow: tc.pace, Breaker: tc.breaker}
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

// An endpoint that has not answered yet has few on their way.
func TestUnknownLaneTurn(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[int]int{0: domain.UnknownMaxInFlight, 3: domain.UnknownMaxInFlight - 3, domain.UnknownMaxInFlight: 0, 10: 0} {
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: inFlight, Speed: domain.Unknown}
		if got := l.Allowance(noon); got != (domain.Allowance{Max: want, FirstAttempts: true, ConcurrencyBound: true}) {
			t.Errorf("with %d on their way: %+v, want %d", inFlight, got, want)
		}
	}
	l := domain.EndpointQueue{MaxInFlight: 2, MaxPerSecond: 20, Speed: domain.Unknown}
	if got := l.Allowance(noon); got.Max != 2 {
		t.Errorf("an endpoint that wants 2 may have %d", got.Max)
	}
}

func TestLaneAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		inFlight  int
		before    int // begun at noon
		n         int
		notBefore time.Duration // after the turn, which is 100 ms after noon
		crowded   bool
	}{
		{"fewer were due", 0, 0, 3, 0, false},
		{"none was due", 0, 0, 0, 0, false},
		{"it is full now", 0, 0, 10, time.Second, true},
		{"it was full", 10, 0, 0, time.Second, true},
		{"the pace is used up", 0, 15, 5, 900 * time.Millisecond, false},
		{"the pace was used up", 0, 20, 0, 900 * time.Millisecond, false},
		{"both are used up", 5, 15, 5, 900 * time.Millisecond, false},
		{"full, the pace was used up too", 10, 20, 0, 900 * time.Millisecond, false},
		{"fewer than the pace allows", 0, 15, 4, 0, false},
	} {
		now := noon.Add(100 * time.Millisecond)
		l := domain.EndpointQueue{MaxInFlight: 10, MaxPerSecond: 20, InFlight: tc.inFlight, RateWindow: domain.RateWindow{}.Add(noon, tc.before)}
		p, notBefore, crowded := l.AfterStart(l.Allowance(now), now, tc.n)
		if notBefore.Sub(now) != tc.notBefore || crowded != tc.crowded {
			t.Errorf("%s: %v, crowded %v; want %v, %v", tc.name, notBefore.Sub(now), crowded, tc.notBefore, tc.crowded)
		}
		if left, _ := p.Allowed(now, 20); left != 20-tc.before-tc.n {
			t.Errorf("%s: %d are left of the pace", tc.name, left)
		}
	}
}

// market is lanes that ask for places, of so many in all, some of which are held.
type market struct {
	lanes        []domain.EndpointQueue
	turns        []domain.Allowance
	limit, least int
	held         map[ids.Tenant]int
}

func (m market) budget() *domain.Budget {
	b := domain.NewBudget(m.limit, m.least)
	for t, n := range m.held {
		b.Acquire(t, domain.Fast, n)
	}
	return b
}

// total is how much of a market is given away.
func (m market) total(got []int) (held map[ids.Tenant]int, total int) {
	held = map[ids.Tenant]int{}
	for t, n := range m.held {
		held[t] += n
		total += n
	}
	for i, n := range got {
		held[m.lanes[i].Key.Tenant] += n
		total += n
	}
	return held, total
}

func drawMarket(t *rapid.T) market {
	m := market{held: map[ids.Tenant]int{}, limit: rapid.IntRange(1, 200).Draw(t, "limit"), least: rapid.IntRange(0, 60).Draw(t, "least")}
	for tenant := range rapid.IntRange(0, 6).Draw(t, "tenants") {
		lanes := rapid.OneOf(rapid.IntRange(1, 4), rapid.Just(50)).Draw(t, "lanes")
		for i := range lanes {
			key := endpointKey(byte(tenant), rapid.Bool().Draw(t, "live"), byte(i))
			m.lanes = append(m.lanes, domain.EndpointQueue{Key: key, Speed: domain.Speed(rapid.IntRange(0, 2).Draw(t, "speed"))})
		}
		m.held[endpointKey(byte(tenant), false, 0).Tenant] = rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 30)).Draw(t, "held")
	}
	m.lanes = rapid.Permutation(m.lanes).Draw(t, "order")
	for range m.lanes {
		m.turns = append(m.turns, domain.Allowance{Max: rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3), rapid.IntRange(0, 100)).Draw(t, "turn")})
	}
	return m
}

// Nobody gets more than he asks for or may have, and who gets less is refused by a bound, or nothing is left.
func TestShareIsNeverOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t)
		_, before := m.total(make([]int, len(m.lanes)))
		got, refused := domain.FairShare(m.lanes, m.turns, m.budget())
		held, total := m.total(got)
		if total > max(m.limit, before) {
			t.Fatalf("%d of %d are given away", total, m.limit)
		}
		speeds := map[domain.Speed]int{}
		for i, n := range got {
			l := m.lanes[i]
			speeds[l.Speed] += n
			if n < 0 || n > m.turns[i].Max {
				t.Fatalf("lane %d got %d of %d", i, n, m.turns[i].Max)
			}
			if n > 0 && held[l.Key.Tenant] > max(m.limit/8, m.least, 1) {
				t.Fatalf("a tenant got %d and has %d of %d, least %d", n, held[l.Key.Tenant], m.limit, m.least)
			}
			if n < m.turns[i].Max && total < m.limit && !refused[l.Key] {
				t.Fatalf("lane %d got %d of %d, %d are left", i, n, m.turns[i].Max, m.limit-total)
			}
			if refused[l.Key] && l.Speed == domain.Fast && held[l.Key.Tenant] < min(max(m.limit/8, m.least), m.limit-total) {
				t.Fatalf("a fast lane of a tenant with %d was refused, %d are left", held[l.Key.Tenant], m.limit-total)
			}
		}
		if speeds[domain.Slow] > max(m.limit/2, 1) || speeds[domain.Unknown] > max(m.limit/4, 1) {
			t.Fatalf("slow and unknown lanes got %d and %d of %d", speeds[domain.Slow], speeds[domain.Unknown], m.limit)
		}
	})
}

// Who gets more than another by over one has outlived the other's demand, or the other's bounds; of equals the
// earlier comes first.
func TestShareIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t)
		got, refused := domain.FairShare(m.lanes, m.turns, m.budget())
		has, wants := map[ids.Tenant]int{}, map[ids.Tenant]bool{}
		var order []ids.Tenant
		for i, l := range m.lanes {
			if !slices.Contains(order, l.Key.Tenant) {
				order = append(order, l.Key.Tenant)
			}
			has[l.Key.Tenant] += got[i]
			wants[l.Key.Tenant] = wants[l.Key.Tenant] || got[i] < m.turns[i].Max && !refused[l.Key]
		}
		for i, a := range order {
			for j, b := range order {
				ahead := has[a] - has[b]
				if wants[b] && (ahead > 1 || ahead == 1 && j < i) {
					t.Fatalf("tenant %d got %d, tenant %d only %d and wants more", i, has[a], j, has[b])
				}
			}
		}
		for i, a := range m.lanes {
			for j, b := range m.lanes {
				ahead := got[i] - got[j]
				if a.Key.Tenant == b.Key.Tenant && got[j] < m.turns[j].Max && !refused[b.Key] && (ahead > 1 || ahead == 1 && j < i) {
					t.Fatalf("lane %d got %d, lane %d of the same tenant only %d of %d", i, got[i], j, got[j], m.turns[j].Max)
				}
			}
		}
	})
}

func TestManyLanesBuyNoMore(t *testing.T) {
	t.Parallel()
	m := market{limit: 100, least: 1000}
	for i := range 50 {
		m.lanes, m.turns = append(m.lanes, domain.EndpointQueue{Key: endpointKey(1, i%2 == 0, byte(i))}), append(m.turns, domain.Allowance{Max: 100})
	}
	m.lanes, m.turns = append(m.lanes, domain.EndpointQueue{Key: endpointKey(2, true, 0)}), append(m.turns, domain.Allowance{Max: 100})
	got, _ := domain.FairShare(m.lanes, m.turns, m.budget())
	if held, _ := m.total(got); held[m.lanes[0].Key.Tenant] != 34 || got[50] != 33 { // and a third is left
		t.Errorf("50 lanes got %d, one got %d", held[m.lanes[0].Key.Tenant], got[50])
	}
	if slices.Min(got[:34]) != 1 || slices.Max(got[:34]) != 1 || slices.Max(got[34:50]) != 0 {
		t.Errorf("the 50 lanes got %v", got[:50])
	}
}
