package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/ids"
)

// LaneKey names an endpoint over all tenants.
type LaneKey struct {
	Tenant   ids.Tenant
	Livemode bool
	Endpoint EndpointID
}

// Compare orders keys as the database locks them.
func (k LaneKey) Compare(o LaneKey) int {
	if c := slices.Compare(bytes(k.Tenant.UUID()), bytes(o.Tenant.UUID())); c != 0 {
		return c
	}
	if k.Livemode != o.Livemode {
		if o.Livemode {
			return -1
		}
		return 1
	}
	return slices.Compare(bytes(k.Endpoint.UUID()), bytes(o.Endpoint.UUID()))
}

func bytes(u [16]byte) []byte { return u[:] }

// Lane is an endpoint that has something to do, as whoever serves it next finds it.
type Lane struct {
	Key          LaneKey
	Enabled      bool
	MaxInFlight  int
	MaxPerSecond int
	InFlight     int
	Pace         Pace
	Breaker      Breaker
}

// Turn is what a lane may begin now.
type Turn struct {
	N       int  // at most so many
	Firsts  bool // first attempts too
	Crowded bool // it is those on their way that hold it back, not the pace
}

// Turn is how many the lane's own bounds allow. While its breaker probes there is one at a time.
func (l Lane) Turn(now time.Time) Turn {
	room := l.MaxInFlight
	if l.Breaker.Probing() {
		room = 1
	}
	room -= l.InFlight
	allowed, _ := l.Pace.Allowed(now, l.MaxPerSecond)
	return Turn{N: max(0, min(room, allowed)), Firsts: !l.Breaker.Open(now), Crowded: room <= allowed}
}

// patience is for how long a crowded lane rests when nobody tells it that one has ended.
const patience = time.Second

// After is what remains of a lane's turn once n were begun: its pace, from when the next turn may be, and whether
// the end of one of those on their way brings it forward.
func (l Lane) After(t Turn, now time.Time, n int) (p Pace, notBefore time.Time, crowded bool) {
	p = l.Pace.Begin(now, n)
	_, free := p.Allowed(now, l.MaxPerSecond)
	if t.Crowded && n == t.N && free.Equal(now) {
		return p, now.Add(patience), true
	}
	return p, free, false
}

// Share deals capacity out to turns, one at a time, round robin over the tenants and within a tenant over its
// lanes in their order, so that neither many endpoints nor a long queue buys more than a turn. held is how many
// of this process's places each tenant has, quota how many one tenant may have.
func Share(lanes []Lane, turns []Turn, capacity, quota int, held map[ids.Tenant]int) []int {
	out := make([]int, len(lanes))
	var order []ids.Tenant
	waiting := map[ids.Tenant][]int{}
	for i, l := range lanes {
		if turns[i].N == 0 {
			continue
		}
		if waiting[l.Key.Tenant] == nil {
			order = append(order, l.Key.Tenant)
		}
		waiting[l.Key.Tenant] = append(waiting[l.Key.Tenant], i)
	}
	taken := map[ids.Tenant]int{}
	for capacity > 0 && len(order) > 0 {
		order = slices.DeleteFunc(order, func(t ids.Tenant) bool {
			queue := waiting[t]
			if capacity == 0 || len(queue) == 0 || held[t]+taken[t] >= quota {
				return true
			}
			i := queue[0]
			out[i]++
			taken[t]++
			capacity--
			queue = queue[1:]
			if out[i] < turns[i].N {
				queue = append(queue, i)
			}
			waiting[t] = queue
			return len(queue) == 0
		})
	}
	return out
}
