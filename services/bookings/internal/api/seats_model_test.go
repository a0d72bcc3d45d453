package api_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// seatsInput is a request of a client about a departure: create, confirm, cancel, move, resize, or note, which changes only the notes of
// a booking. advance makes all holds lapse, and capacity changes the seats of the unit.
type seatsInput struct {
	verb    string
	id      string
	hour    int
	n       int // guests or seats
	hold    bool
	private bool
}

type seatsOutput struct {
	status, left int
	id           string // id of the created booking
}

// party is a booking in the model.
type party struct {
	hour, guests int
	status       string
	until        int // the last epoch of its hold
	private      bool
}

// manifest is the model: the bookings of the departures of a unit. It is immutable.
type manifest struct {
	epoch, capacity int
	parties         map[string]party
}

func (m manifest) holds(p party) bool {
	return p.status == "confirmed" || p.status == "pending" && p.until >= m.epoch
}

// left returns the seats that are left for the booking by, which does not count.
func (m manifest) left(by string, hour int) int {
	left := m.capacity
	for id, p := range m.parties {
		switch {
		case id == by || p.hour != hour || !m.holds(p):
		case p.private:
			return 0
		default:
			left -= p.guests
		}
	}
	return left
}

func (m manifest) with(id string, p party) manifest {
	m.parties = maps.Clone(m.parties)
	m.parties[id] = p
	return m
}

// fits reports whether a booking can have the departure. If not, the response must state what is left.
func (m manifest) fits(id string, p party, out seatsOutput) (ok, valid bool) {
	free := m.left(id, p.hour)
	if p.private && free == m.capacity || !p.private && p.guests <= free {
		return true, out.status == 200 || out.status == 201
	}
	return false, out.status == 409 && out.left == m.left("", p.hour)
}

// step reports whether the output is possible for a unit of which no seat is sold twice, and returns the next state.
func (m manifest) step(in seatsInput, out seatsOutput) (bool, manifest) {
	p := m.parties[in.id]
	switch in.verb {
	case "advance":
		m.epoch++
		return true, m
	case "note":
		return out.status == 200, m
	case "capacity":
		return m.resizeUnit(in.n, out)
	case "create":
		p = party{hour: in.hour, guests: in.n, status: "pending", until: 1 << 30, private: in.private}
		if in.hold {
			p.until = m.epoch
		}
		if in.n > m.capacity {
			return out.status == 422, m
		}
		if ok, valid := m.fits("", p, out); !ok {
			return valid, m
		}
		return out.status == 201, m.with(out.id, p)
	case "cancel":
		if p.status == "cancelled" {
			return out.status == 200, m
		}
	case "move", "resize":
		return m.change(in, p, out)
	}
	if !m.holds(p) {
		return out.status == 422, m
	}
	p.status = map[string]string{"confirm": "confirmed", "cancel": "cancelled"}[in.verb]
	return out.status == 200, m.with(in.id, p)
}

func (m manifest) change(in seatsInput, p party, out seatsOutput) (bool, manifest) {
	if !m.holds(p) {
		return out.status == 422, m
	}
	next := p
	if in.verb == "move" {
		next.hour = in.hour
	} else if next.guests = in.n; in.n > m.capacity {
		return out.status == 422, m
	}
	if next == p || next.hour == p.hour && p.private {
		return out.status == 200, m.with(in.id, next)
	}
	if ok, valid := m.fits(in.id, next, out); !ok {
		return valid, m
	}
	return out.status == 200, m.with(in.id, next)
}

func (m manifest) resizeUnit(n int, out seatsOutput) (bool, manifest) {
	for _, p := range m.parties {
		if m.holds(p) && (p.private && n < m.capacity || m.capacity-m.left("", p.hour) > n && !p.private) {
			return out.status == 422, m
		}
	}
	m.capacity = n
	return out.status == 200, m
}

func seatsModel(capacity int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return manifest{capacity: capacity, parties: map[string]party{}} },
		Step: func(state, in, out any) (bool, any) {
			ok, next := state.(manifest).step(in.(seatsInput), out.(seatsOutput))
			return ok, next
		},
		Equal: func(a, b any) bool {
			x, y := a.(manifest), b.(manifest)
			return x.epoch == y.epoch && x.capacity == y.capacity && maps.Equal(x.parties, y.parties)
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
	}
}

// seatsHistory records the parallel requests of clients and their responses.
type seatsHistory struct {
	// time is write-locked while the clock moves. A request reads the clock before it waits for the departure, so if the clock moved in
	// between, the model would have no single time for it. The worker expires holds while requests run.
	time sync.RWMutex

	mu      sync.Mutex
	created []string
	ops     []porcupine.Operation
}

func (h *seatsHistory) pick() seatsInput {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := seatsInput{verb: "create", hour: 10 + 2*rand.IntN(2), n: 1 + rand.IntN(3), hold: rand.IntN(2) == 0, private: rand.IntN(6) == 0}
	switch n := rand.IntN(24); {
	case n == 0:
		return seatsInput{verb: "advance"}
	case n == 1:
		return seatsInput{verb: "capacity", n: 2 + rand.IntN(5)}
	case n > 9 && len(h.created) > 0:
		in.verb = []string{"confirm", "cancel", "move", "resize", "note"}[n%5]
		in.id = h.created[len(h.created)-1-rand.IntN(min(6, len(h.created)))]
	}
	return in
}

func (h *seatsHistory) note(client int, in seatsInput, out seatsOutput, began, ended time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.status == 201 {
		h.created = append(h.created, out.id)
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: began.UnixNano(), Return: ended.UnixNano()})
}

// carry sends the request that in describes.
func (w walk) carry(h *seatsHistory, in seatsInput) seatsOutput {
	if in.verb != "advance" {
		h.time.RLock()
		defer h.time.RUnlock()
	}
	var a response
	switch in.verb {
	case "advance":
		h.time.Lock()
		w.clock.move(2 * time.Minute)
		h.time.Unlock()
		if err := w.expiry.Run(w.T.Context()); err != nil {
			w.T.Error(err)
		}
		return seatsOutput{}
	case "capacity":
		a = w.do(w.ctx, "PATCH", "/units/"+w.unit, fmt.Sprintf(`{"capacity":%d}`, in.n))
	case "create":
		more := fmt.Sprintf(`,"exclusive":%v`, in.private)
		if in.hold {
			more += `,"hold_minutes":1`
		}
		if a = w.post(w.ctx, "{"+w.at(in.hour, in.n)+more+"}"); a.Status == 201 {
			return seatsOutput{status: 201, id: a.booking().ID}
		}
	case "confirm":
		a = w.patch(w.ctx, in.id, `{"status":"confirmed"}`)
	case "cancel":
		a = w.do(w.ctx, "POST", "/bookings/"+in.id+"/cancel", "")
	case "move":
		a = w.patch(w.ctx, in.id, fmt.Sprintf(`{"event_start_time":"%d:00"}`, in.hour))
	case "resize":
		a = w.patch(w.ctx, in.id, fmt.Sprintf(`{"guest_count":%d}`, in.n))
	case "note":
		a = w.patch(w.ctx, in.id, fmt.Sprintf(`{"notes":"%d"}`, rand.Int()))
	}
	if !slices.Contains([]int{200, 409, 422}, a.Status) {
		w.T.Errorf("%+v: %d %s", in, a.Status, a.Body)
	}
	out := seatsOutput{status: a.Status}
	if a.Status == 409 {
		left := decode[struct {
			Error struct {
				SeatsAvailable *int `json:"seats_available"`
			}
		}](a).Error.SeatsAvailable
		if left == nil {
			w.T.Fatalf("%+v: %s", in, a.Body)
		}
		out.left = *left
	}
	return out
}

// wrongSums counts the sessions whose seats are not those of their bookings.
const wrongSums = `select count(*) from unit_claims c where c.capacity is not null and c.taken is distinct from (
	select sum(b.seats) from bookings b where b.session_id = c.booking_id and b.status in ('pending', 'confirmed'))`

// TestSeatsAreLinearizable runs clients that create, confirm, cancel, move, and resize bookings of two departures in parallel, while
// holds lapse, the worker expires them, and the capacity changes. It checks that the responses have an order in which no seat was sold
// twice, no free seat was refused, and each refusal stated the seats that were left.
func TestSeatsAreLinearizable(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 60
	}
	world, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for range rounds {
		w := newWalk(t, world, ctx, 4)
		var h seatsHistory
		w.race(&h)
		result, info := porcupine.CheckOperationsVerbose(seatsModel(4), h.ops, time.Minute)
		if n := w.Count(wrongSums); n != 0 {
			t.Fatalf("%d sessions do not add up", n)
		}
		if result == porcupine.Ok {
			continue
		}
		slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, op := range h.ops {
			t.Logf("%d–%d client %d: %+v → %+v", (op.Call-h.ops[0].Call)/1000, (op.Return-h.ops[0].Call)/1000, op.ClientId, op.Input, op.Output)
		}
		t.Fatalf("%v: the longest orders found are %v", result, info.PartialLinearizations())
	}
}

func (w walk) race(h *seatsHistory) {
	var clients sync.WaitGroup
	for client := range 6 {
		clients.Go(func() {
			for range 15 {
				in, began := h.pick(), time.Now()
				out := w.carry(h, in)
				h.note(client, in, out, began, time.Now())
			}
		})
	}
	clients.Wait()
}
