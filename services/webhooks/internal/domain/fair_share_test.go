package domain_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

// demand is a set of queues with their allowances, and a partly used budget.
type demand struct {
	queues            []domain.EndpointQueue
	allowances        []domain.Allowance
	limit, leastShare int
	used              map[ids.Tenant]int
}

// budget returns the budget of the demand.
func (m demand) budget() *domain.Budget {
	b := domain.NewBudget(m.limit, m.leastShare)
	for t, n := range m.used {
		b.Acquire(t, domain.Fast, n)
	}
	return b
}

// total returns the usage of each tenant and of all tenants together after the queues received these shares.
func (m demand) total(got []int) (used map[ids.Tenant]int, total int) {
	used = map[ids.Tenant]int{}
	for t, n := range m.used {
		used[t] += n
		total += n
	}
	for i, n := range got {
		used[m.queues[i].Key.Tenant] += n
		total += n
	}
	return used, total
}

func drawDemand(t *rapid.T) demand {
	m := demand{used: map[ids.Tenant]int{}, limit: rapid.IntRange(1, 200).Draw(t, "limit"), leastShare: rapid.IntRange(0, 60).Draw(t, "least")}
	for tenant := range rapid.IntRange(0, 6).Draw(t, "tenants") {
		count := rapid.OneOf(rapid.IntRange(1, 4), rapid.Just(50)).Draw(t, "queues")
		for i := range count {
			key := endpointKey(byte(tenant), rapid.Bool().Draw(t, "live"), byte(i))
			m.queues = append(m.queues, domain.EndpointQueue{Key: key, Speed: domain.Speed(rapid.IntRange(0, 2).Draw(t, "speed"))})
		}
		m.used[endpointKey(byte(tenant), false, 0).Tenant] = rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 30)).Draw(t, "used")
	}
	m.queues = rapid.Permutation(m.queues).Draw(t, "order")
	for range m.queues {
		m.allowances = append(m.allowances, domain.Allowance{Max: rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3), rapid.IntRange(0, 100)).Draw(t, "allowance")})
	}
	return m
}

// No queue gets more than its allowance or a limit allows. If a queue gets less, a limit applied or no capacity is left.
func TestFairShareExceedsNoLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawDemand(t)
		_, before := m.total(make([]int, len(m.queues)))
		got, refused := domain.FairShare(m.queues, m.allowances, m.budget())
		used, total := m.total(got)
		if total > max(m.limit, before) {
			t.Fatalf("%d of %d are used", total, m.limit)
		}
		speeds := map[domain.Speed]int{}
		for i, n := range got {
			l := m.queues[i]
			speeds[l.Speed] += n
			if n < 0 || n > m.allowances[i].Max {
				t.Fatalf("queue %d got %d of %d", i, n, m.allowances[i].Max)
			}
			if n > 0 && used[l.Key.Tenant] > max(m.limit/8, m.leastShare, 1) {
				t.Fatalf("a tenant got %d and has %d of %d, least share %d", n, used[l.Key.Tenant], m.limit, m.leastShare)
			}
			if n < m.allowances[i].Max && total < m.limit && !refused[l.Key] {
				t.Fatalf("queue %d got %d of %d, %d are left", i, n, m.allowances[i].Max, m.limit-total)
			}
			if refused[l.Key] && l.Speed == domain.Fast && used[l.Key.Tenant] < min(max(m.limit/8, m.leastShare), m.limit-total) {
				t.Fatalf("a fast queue of a tenant with %d was refused, %d are left", used[l.Key.Tenant], m.limit-total)
			}
		}
		if speeds[domain.Slow] > max(m.limit/2, 1) || speeds[domain.Unknown] > max(m.limit/4, 1) {
			t.Fatalf("slow and unknown queues got %d and %d of %d", speeds[domain.Slow], speeds[domain.Unknown], m.limit)
		}
	})
}

// A tenant or a queue gets at most one more than another that still needs more, and only if it is earlier in the order.
func TestFairShareIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawDemand(t)
		got, refused := domain.FairShare(m.queues, m.allowances, m.budget())
		total, wants := map[ids.Tenant]int{}, map[ids.Tenant]bool{}
		var order []ids.Tenant
		for i, l := range m.queues {
			if !slices.Contains(order, l.Key.Tenant) {
				order = append(order, l.Key.Tenant)
			}
			total[l.Key.Tenant] += got[i]
			wants[l.Key.Tenant] = wants[l.Key.Tenant] || got[i] < m.allowances[i].Max && !refused[l.Key]
		}
		for i, a := range order {
			for j, b := range order {
				ahead := total[a] - total[b]
				if wants[b] && (ahead > 1 || ahead == 1 && j < i) {
					t.Fatalf("tenant %d got %d, tenant %d only %d and wants more", i, total[a], j, total[b])
				}
			}
		}
		for i, a := range m.queues {
			for j, b := range m.queues {
				ahead := got[i] - got[j]
				if a.Key.Tenant == b.Key.Tenant && got[j] < m.allowances[j].Max && !refused[b.Key] && (ahead > 1 || ahead == 1 && j < i) {
					t.Fatalf("queue %d got %d, queue %d of the same tenant only %d of %d", i, got[i], j, got[j], m.allowances[j].Max)
				}
			}
		}
	})
}

func TestManyEndpointsGetNoMore(t *testing.T) {
	t.Parallel()
	m := demand{limit: 100, leastShare: 1000}
	for i := range 50 {
		m.queues, m.allowances = append(m.queues, domain.EndpointQueue{Key: endpointKey(1, i%2 == 0, byte(i))}), append(m.allowances, domain.Allowance{Max: 100})
	}
	m.queues, m.allowances = append(m.queues, domain.EndpointQueue{Key: endpointKey(2, true, 0)}), append(m.allowances, domain.Allowance{Max: 100})
	got, _ := domain.FairShare(m.queues, m.allowances, m.budget())
	if used, _ := m.total(got); used[m.queues[0].Key.Tenant] != 34 || got[50] != 33 { // and a third is left
		t.Errorf("50 queues got %d, one got %d", used[m.queues[0].Key.Tenant], got[50])
	}
	if slices.Min(got[:34]) != 1 || slices.Max(got[:34]) != 1 || slices.Max(got[34:50]) != 0 {
		t.Errorf("the 50 queues got %v", got[:50])
	}
}

// Bytes are divided like concurrency. A body that is larger than a limit is selected if nothing else is used.
func TestSelectByBytes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	queues := []domain.EndpointQueue{{Key: endpointKey(1, true, 1)}, {Key: endpointKey(1, true, 2)}, {Key: endpointKey(2, true, 1)}}
	of := func(sizes ...[2]int) (out []domain.Candidate) {
		for _, s := range sizes {
			out = append(out, domain.Candidate{Queue: s[0], Bytes: s[1]})
		}
		return out
	}
	for _, tc := range []struct {
		name         string
		limit, batch int
		candidates   []domain.Candidate
		want         []int
		refused      []int
	}{
		{"all fit, round robin", 64 * mib, 8 * mib, of([2]int{0, 1}, [2]int{0, 1}, [2]int{1, 1}, [2]int{2, 1}), []int{0, 3, 2, 1}, nil},
		{"the batch is full", 64 * mib, 2 * mib, of([2]int{0, mib}, [2]int{0, mib}, [2]int{2, mib}), []int{0, 2}, nil},
		{"larger than the batch", 64 * mib, mib, of([2]int{0, 2 * mib}, [2]int{2, 1}), []int{0}, nil},
		{"a tenant's share", 16 * mib, 8 * mib, of([2]int{0, mib}, [2]int{0, mib}, [2]int{0, mib}, [2]int{1, 1}, [2]int{2, mib}), []int{0, 4, 3}, []int{0}},
		{"larger than all", mib, 8 * mib, of([2]int{0, 2 * mib}, [2]int{2, 1}), []int{0}, []int{2}},
		{"without bodies", mib, mib, of([2]int{0, 0}, [2]int{2, 0}), []int{0, 1}, nil},
		{"nothing", mib, mib, nil, nil, nil},
	} {
		selected, refused := domain.SelectByBytes(queues, tc.candidates, domain.NewBudget(tc.limit, 0), tc.batch)
		if len(selected) != len(tc.want) {
			t.Errorf("%s: selected %v, want %v", tc.name, selected, tc.want)
			continue
		}
		for i := range selected {
			if selected[i] != tc.want[i] {
				t.Errorf("%s: selected %v, want %v", tc.name, selected, tc.want)
			}
		}
		for i, l := range queues {
			want := false
			for _, r := range tc.refused {
				want = want || r == i
			}
			if refused[l.Key] != want {
				t.Errorf("%s: queue %d refused: %v", tc.name, i, refused[l.Key])
			}
		}
	}
}

// The bytes exceed neither their limit nor the batch, except for a single body that is larger.
func TestSelectByBytesExceedsNoLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawDemand(t)
		batch, largest := rapid.IntRange(1, 100).Draw(t, "batch"), 0
		var candidates []domain.Candidate
		for i := range m.queues {
			for range rapid.IntRange(0, 5).Draw(t, "due") {
				n := rapid.IntRange(0, 80).Draw(t, "bytes")
				candidates, largest = append(candidates, domain.Candidate{Queue: i, Bytes: n}), max(largest, n)
			}
		}
		selected, _ := domain.SelectByBytes(m.queues, candidates, m.budget(), batch)
		got, sum := make([]int, len(m.queues)), 0
		for _, i := range selected {
			got[candidates[i].Queue] += candidates[i].Bytes
			sum += candidates[i].Bytes
		}
		_, before := m.total(make([]int, len(m.queues)))
		if sum > max(batch, largest) || before+sum > max(m.limit, before, largest) {
			t.Fatalf("%d bytes next to %d, batch %d, limit %d", sum, before, batch, m.limit)
		}
		if len(candidates) > 0 && before == 0 && len(selected) == 0 {
			t.Fatal("nothing is selected though nothing is used")
		}
	})
}
