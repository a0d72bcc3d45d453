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
	Speed        Speed
}

// Turn is what a lane may begin now.
type Turn struct {
	N       int  // at most so many
	Firsts  bool // first attempts too
	Crowded bool // it is those on their way that hold it back, not the pace
}

// Turn is how many the lane's own bounds allow. While its breaker probes there is one at a time, and until it has
// answered UnknownAtATime.
func (l Lane) Turn(now time.Time) Turn {
	room := l.MaxInFlight
	if l.Speed == Unknown {
		room = min(room, UnknownAtATime)
	}
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

// Share deals places out to turns, one at a time, round robin over the tenants and within a tenant over its lanes in
// their order, so that neither many endpoints nor a long queue buys more than a turn. Refused are the lanes that
// could begin more, were it not for a bound of their tenant or their speed.
func Share(lanes []Lane, turns []Turn, places *Budget) (out []int, refused map[LaneKey]bool) {
	out, refused = make([]int, len(lanes)), map[LaneKey]bool{}
	roundRobin(len(lanes), func(i int) ids.Tenant { return lanes[i].Key.Tenant }, func(i int) (again bool) {
		if out[i] == turns[i].N || places.Free() <= 0 {
			return false
		}
		if !places.Take(lanes[i].Key.Tenant, lanes[i].Speed, 1) {
			refused[lanes[i].Key] = true
			return false
		}
		out[i]++
		return true
	})
	return out, refused
}

// Load is a delivery that is due, with the bytes of its body.
type Load struct {
	Lane  int // of a list of lanes
	Bytes int
}

// Fit picks of loads, which come in the order of each lane, those whose bodies there is room for, round robin as
// Share does, batch bytes at most; the first may be larger. Refused are the lanes that could begin more, were it not
// for the room: a lane's order is kept, so what is small does not pass by what is large.
func Fit(lanes []Lane, loads []Load, bytes *Budget, batch int) (picked []int, refused map[LaneKey]bool) {
	waiting := make([][]int, len(lanes))
	for i, l := range loads {
		waiting[l.Lane] = append(waiting[l.Lane], i)
	}
	refused, sum, full := map[LaneKey]bool{}, 0, false
	roundRobin(len(lanes), func(i int) ids.Tenant { return lanes[i].Key.Tenant }, func(i int) (again bool) {
		if len(waiting[i]) == 0 || full {
			return false
		}
		next := waiting[i][0]
		n := loads[next].Bytes
		if full = !within(sum, n, batch); full {
			return false
		}
		if !bytes.Take(lanes[i].Key.Tenant, lanes[i].Speed, n) {
			refused[lanes[i].Key] = true
			return false
		}
		waiting[i], sum, picked = waiting[i][1:], sum+n, append(picked, next)
		return true
	})
	return picked, refused
}

// roundRobin serves n lanes, tenant by tenant, each tenant's in turn, until none wants to be served again.
func roundRobin(n int, tenant func(int) ids.Tenant, serve func(int) (again bool)) {
	var order []ids.Tenant
	waiting := map[ids.Tenant][]int{}
	for i := range n {
		t := tenant(i)
		if waiting[t] == nil {
			order = append(order, t)
		}
		waiting[t] = append(waiting[t], i)
	}
	for len(order) > 0 {
		order = slices.DeleteFunc(order, func(t ids.Tenant) bool {
			queue := waiting[t]
			for len(queue) > 0 {
				i := queue[0]
				queue = queue[1:]
				if serve(i) {
					queue = append(queue, i)
					break
				}
			}
			waiting[t] = queue
			return len(queue) == 0
		})
	}
}
