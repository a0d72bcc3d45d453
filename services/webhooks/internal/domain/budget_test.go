package domain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

func tenant(n byte) ids.Tenant { return endpointKey(n, false, 0).Tenant }

func TestSpeed(t *testing.T) {
	t.Parallel()
	if got := domain.SpeedAt(nil, noon); got != domain.Unknown {
		t.Errorf("one that never answered is %v", got)
	}
	quick := domain.SlowUntil(nil, noon, domain.SlowAfter-1)
	if got := domain.SpeedAt(quick, noon); got != domain.Fast {
		t.Errorf("one that answered fast is %v", got)
	}
	slow := domain.SlowUntil(quick, noon, domain.SlowAfter)
	if kept := domain.SlowUntil(slow, noon.Add(time.Second), 0); kept != slow {
		t.Errorf("a fast answer between ends slowness: %v", kept)
	}
	for after, want := range map[time.Duration]domain.Speed{0: domain.Slow, domain.SlowFor - 1: domain.Slow, domain.SlowFor: domain.Fast} {
		if got := domain.SpeedAt(slow, noon.Add(after)); got != want {
			t.Errorf("%v after a slow answer it is %v", after, got)
		}
	}
}

// Slow endpoints fill their half, unknown ones their quarter, and what is left is for the fast ones.
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

// However many tenants take all that they can get, one more still gets something.
func TestBudgetLeavesSomething(t *testing.T) {
	t.Parallel()
	for _, hogs := range []byte{1, 7, 8, 16, 60} {
		b := domain.NewBudget(1024, 32)
		for took := true; took; {
			took = false
			for n := range hogs {
				took = b.TryAcquire(tenant(n), domain.Fast, 1) || took
			}
		}
		if left, want := b.Free(), 1024/(int(hogs)+1); left < want {
			t.Errorf("%d tenants leave %d, want %d", hogs, left, want)
		}
	}
}

// Of bytes as of places; what is larger than a bound goes alone.
func TestFit(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	lanes := []domain.EndpointQueue{{Key: endpointKey(1, true, 1)}, {Key: endpointKey(1, true, 2)}, {Key: endpointKey(2, true, 1)}}
	of := func(sizes ...[2]int) (out []domain.Candidate) {
		for _, s := range sizes {
			out = append(out, domain.Candidate{Queue: s[0], Bytes: s[1]})
		}
		return out
	}
	for _, tc := range []struct {
		name         string
		limit, batch int
		loads        []domain.Candidate
		want         []int
		refused      []int
	}{
		{"all fit, in turn", 64 * mib, 8 * mib, of([2]int{0, 1}, [2]int{0, 1}, [2]int{1, 1}, [2]int{2, 1}), []int{0, 3, 2, 1}, nil},
		{"the batch is full", 64 * mib, 2 * mib, of([2]int{0, mib}, [2]int{0, mib}, [2]int{2, mib}), []int{0, 2}, nil},
		{"larger than the batch", 64 * mib, mib, of([2]int{0, 2 * mib}, [2]int{2, 1}), []int{0}, nil},
		{"a tenant's share", 16 * mib, 8 * mib, of([2]int{0, mib}, [2]int{0, mib}, [2]int{0, mib}, [2]int{1, 1}, [2]int{2, mib}), []int{0, 4, 3}, []int{0}},
		{"larger than all", mib, 8 * mib, of([2]int{0, 2 * mib}, [2]int{2, 1}), []int{0}, []int{2}},
		{"what has no body", mib, mib, of([2]int{0, 0}, [2]int{2, 0}), []int{0, 1}, nil},
		{"nothing", mib, mib, nil, nil, nil},
	} {
		picked, refused := domain.SelectByBytes(lanes, tc.loads, domain.NewBudget(tc.limit, 0), tc.batch)
		if len(picked) != len(tc.want) {
			t.Errorf("%s: picked %v, want %v", tc.name, picked, tc.want)
			continue
		}
		for i := range picked {
			if picked[i] != tc.want[i] {
				t.Errorf("%s: picked %v, want %v", tc.name, picked, tc.want)
			}
		}
		for i, l := range lanes {
			want := false
			for _, r := range tc.refused {
				want = want || r == i
			}
			if refused[l.Key] != want {
				t.Errorf("%s: lane %d refused: %v", tc.name, i, refused[l.Key])
			}
		}
	}
}

// Bytes are never over their limit or the batch, but for one that is larger than all.
func TestFitIsNeverOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMarket(t)
		batch, largest := rapid.IntRange(1, 100).Draw(t, "batch"), 0
		var loads []domain.Candidate
		for i := range m.lanes {
			for range rapid.IntRange(0, 5).Draw(t, "due") {
				n := rapid.IntRange(0, 80).Draw(t, "bytes")
				loads, largest = append(loads, domain.Candidate{Queue: i, Bytes: n}), max(largest, n)
			}
		}
		picked, _ := domain.SelectByBytes(m.lanes, loads, m.budget(), batch)
		got, sum := make([]int, len(m.lanes)), 0
		for _, i := range picked {
			got[loads[i].Queue] += loads[i].Bytes
			sum += loads[i].Bytes
		}
		_, before := m.total(make([]int, len(m.lanes)))
		if sum > max(batch, largest) || before+sum > max(m.limit, before, largest) {
			t.Fatalf("%d bytes beside %d, batch %d, limit %d", sum, before, batch, m.limit)
		}
		if len(loads) > 0 && before == 0 && len(picked) == 0 {
			t.Fatal("nothing goes though nothing is held")
		}
	})
}
