package api_test

import (
	"context"
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

// hours is a time span within one unit's day. A booking occupies the unit for the entire span.
type hours struct{ from, to int }

func (h hours) meets(o hours) bool { return h.from < o.to && o.from < h.to }

func (h hours) json() string {
	return fmt.Sprintf(`"event_date":"2030-05-01","event_start_time":"%02d:00","event_end_time":"%02d:00"`, 10+h.from, 10+h.to)
}

// input is a client request: create, confirm, cancel, move, or advance, which makes all holds lapse.
type input struct {
	verb string
	id   string
	when hours
	hold bool
}

type output struct {
	status int
	id     string // id of the created booking
}

// claim is a booking in the model.
type claim struct {
	when   hours
	status string
	until  int // the last epoch of its hold
}

// ledger is the model: one unit's bookings, and the number of times that time was advanced. It is immutable.
type ledger struct {
	epoch  int
	claims map[string]claim
}

func (l ledger) holds(c claim) bool {
	return c.status == "confirmed" || c.status == "pending" && c.until >= l.epoch
}

func (l ledger) taken(by string, when hours) bool {
	for id, c := range l.claims {
		if id != by && l.holds(c) && c.when.meets(when) {
			return true
		}
	}
	return false
}

func (l ledger) with(id string, c claim) ledger {
	next := ledger{epoch: l.epoch, claims: maps.Clone(l.claims)}
	next.claims[id] = c
	return next
}

// step reports whether the output is possible for a unit that is never booked twice, and returns the next state.
func (l ledger) step(in input, out output) (bool, ledger) {
	c := l.claims[in.id]
	switch in.verb {
	case "advance":
		return true, ledger{epoch: l.epoch + 1, claims: l.claims}
	case "create":
		if l.taken("", in.when) {
			return out.status == 409, l
		}
		until := 1 << 30
		if in.hold {
			until = l.epoch
		}
		return out.status == 201, l.with(out.id, claim{when: in.when, status: "pending", until: until})
	case "cancel":
		if c.status == "cancelled" {
			return out.status == 200, l
		}
	case "move":
		if !l.holds(c) { // a final booking can be set to its own status again
			return out.status == 422 || out.status == 200 && c.when == in.when, l
		}
		if l.taken(in.id, in.when) {
			return out.status == 409, l
		}
		c.when = in.when
		return out.status == 200, l.with(in.id, c)
	}
	if !l.holds(c) {
		return out.status == 422, l
	}
	c.status = map[string]string{"confirm": "confirmed", "cancel": "cancelled"}[in.verb]
	return out.status == 200, l.with(in.id, c)
}

var model = porcupine.Model{
	Init: func() any { return ledger{claims: map[string]claim{}} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(ledger).step(in.(input), out.(output))
		return ok, next
	},
	Equal: func(a, b any) bool {
		x, y := a.(ledger), b.(ledger)
		return x.epoch == y.epoch && maps.Equal(x.claims, y.claims)
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

// history records the parallel requests of clients and their responses.
type history struct {
	time    sync.RWMutex // like that of seatsHistory
	mu      sync.Mutex
	created []string
	ops     []porcupine.Operation
}

func (h *history) pick() input {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := rand.IntN(4)
	in := input{verb: "create", when: hours{from, from + 1 + rand.IntN(2)}, hold: rand.IntN(2) == 0}
	switch n := rand.IntN(20); {
	case n == 0:
		return input{verb: "advance"}
	case n > 7 && len(h.created) > 0:
		in.verb, in.id = []string{"confirm", "cancel", "move"}[n%3], h.created[len(h.created)-1-rand.IntN(min(6, len(h.created)))]
	}
	return in
}

func (h *history) note(client int, in input, out output, began, ended time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.status == 201 {
		h.created = append(h.created, out.id)
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: began.UnixNano(), Return: ended.UnixNano()})
}

// carry sends the request that in describes.
func (w *world) carry(ctx context.Context, h *history, unit string, in input) output {
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
		return output{}
	case "create":
		hold := ""
		if in.hold {
			hold = `,"hold_minutes":1`
		}
		if a = w.post(ctx, `{`+in.when.json()+`,"unit_id":`+str(unit)+hold+`}`); a.Status == 201 {
			return output{status: 201, id: a.booking().ID}
		}
	case "confirm":
		a = w.patch(ctx, in.id, `{"status":"confirmed"}`)
	case "cancel":
		a = w.do(ctx, "POST", "/bookings/"+in.id+"/cancel", "")
	case "move":
		a = w.patch(ctx, in.id, `{`+in.when.json()+`}`)
	}
	if !slices.Contains([]int{200, 409, 422}, a.Status) {
		w.T.Errorf("%+v: %d %s", in, a.Status, a.Body)
	}
	return output{status: a.Status}
}

// TestClaimsAreLinearizable runs clients that create, confirm, cancel, and move bookings of one unit in parallel, while holds
// lapse and the worker expires them. It checks that the responses have an order in which the unit was never booked twice and no
// free time was refused.
func TestClaimsAreLinearizable(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 60
	}
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for range rounds {
		unit := w.offer(ctx, "/units", `{"name":"U"}`).ID
		var h history
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() {
				for range 15 {
					in, began := h.pick(), time.Now()
					out := w.carry(ctx, &h, unit, in)
					h.note(client, in, out, began, time.Now())
				}
			})
		}
		clients.Wait()
		result, info := porcupine.CheckOperationsVerbose(model, h.ops, time.Minute)
		if result == porcupine.Ok {
			continue
		}
		slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, op := range h.ops {
			t.Logf("%d–%d client %d: %s", (op.Call-h.ops[0].Call)/1000, (op.Return-h.ops[0].Call)/1000, op.ClientId, model.DescribeOperation(op.Input, op.Output))
		}
		t.Fatalf("%v: the longest orders found are %v", result, info.PartialLinearizations())
	}
}
