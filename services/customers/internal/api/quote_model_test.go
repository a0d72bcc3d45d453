package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// offered is the model of one sent quote.
type offered struct {
	status    string
	lapsed    bool // its time is over
	accepting bool // an accept got no clear response
}

// outcome is a response to a client: the status, and the code of a 409.
type outcome struct {
	status int
	code   string
}

// step reports whether this response is possible for a quote that is accepted or ended only once. It returns the state after the
// step.
func (o offered) step(verb string, out outcome) (bool, offered) {
	if o.status == "sent" && o.lapsed && !o.accepting {
		o.status = "expired"
	}
	if out.code == "idempotency_in_progress" {
		return verb != "patch", o // it has waited long enough
	}
	switch verb {
	case "lapse":
		o.lapsed = true
		return true, o
	case "complete": // or another process holds the accept
		return true, o
	case "patch":
		return out.status == 200, o
	case "accept":
		return o.accept(out)
	}
	to := map[string]string{"cancel": "cancelled", "decline": "declined"}[verb]
	switch {
	case o.status == to:
		return out.status == 200, o
	case o.status == "sent" && !o.accepting:
		o.status = to
		return out.status == 200, o
	case o.status == "sent": // the completer has ended the accept in the meantime
		o.status = "accepted"
	}
	return out.status == 422, o
}

func (o offered) accept(out outcome) (bool, offered) {
	switch {
	case o.status == "accepted":
		return out.status == 200, o
	case o.status != "sent":
		return out.status == 422, o
	case out.status == 200:
		o.status, o.accepting = "accepted", false
	case out.status == 503:
		o.accepting = true
	case out.status == 409 && out.code == "slot_unavailable":
		o.accepting = false
	default:
		return false, o
	}
	return true, o
}

var offeredModel = porcupine.Model{
	Init: func() any { return offered{status: "sent"} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(offered).step(in.(string), out.(outcome))
		return ok, next
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v → %+v", in, out) },
}

// perform sends the request for verb about a quote.
func (w *world) perform(ctx context.Context, id, verb string) outcome {
	w.T.Helper()
	switch verb {
	case "lapse":
		w.clock.move(15 * 24 * time.Hour)
		if err := w.expiry.Run(w.T.Context()); err != nil {
			w.T.Error(err)
		}
		return outcome{}
	case "complete":
		if err := w.completers.Quotes(w.quotes)(w.T.Context()); err != nil {
			w.T.Error(err)
		}
		return outcome{}
	}
	var a response
	if verb == "patch" {
		a = w.do(ctx, "PATCH", "/quotes/"+id, fmt.Sprintf(`{"notes":"%d"}`, rand.Int()))
	} else {
		a = w.onQuote(ctx, id, verb)
	}
	if !slices.Contains([]int{200, 409, 422, 503}, a.Status) {
		w.T.Errorf("%s: %d %s", verb, a.Status, a.Body)
	}
	out := outcome{status: a.Status}
	if a.Status == 409 {
		out.code = decode[struct{ Error struct{ Code string } }](a).Error.Code
	}
	return out
}

// TestQuotesAreLinearizable runs clients that accept, decline, cancel and change one quote at the same time. Meanwhile, bookings
// refuses or does not respond, the quote expires, and leases end. The test checks that the responses have an order in which the
// quote was ended once. The booking, the invoice and the event exist exactly if the quote was accepted.
func TestQuotesAreLinearizable(t *testing.T) {
	t.Parallel()
	rounds := 8
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 100
	}
	for name, tc := range map[string]struct {
		verbs    []string
		refusals []error
	}{
		"refused": {
			[]string{"accept", "accept", "accept", "decline", "cancel", "patch"},
			[]error{nil, errTaken, errTaken, errTaken},
		},
		"expiring": {
			[]string{"accept", "accept", "accept", "decline", "cancel", "patch", "lapse", "complete"},
			[]error{nil, apperr.ErrUnavailable, apperr.ErrUnavailable},
		},
	} {
		for round := range rounds { // each round is a separate test, which closes its connections
			t.Run(fmt.Sprintf("%s %d", name, round), func(t *testing.T) {
				w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
				w.quotes.MaxWait = 300 * time.Millisecond
				q := w.sentQuote(ctx, "")
				hook := func(_ context.Context, call string) error {
					if call != "create" {
						return nil
					}
					time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
					return tc.refusals[rand.IntN(len(tc.refusals))]
				}
				w.bookings.Before = hook
				if name == "expiring" && round%2 == 0 { // responses are also lost
					w.bookings.After = hook
				}
				var mu sync.Mutex
				var ops []porcupine.Operation
				var clients sync.WaitGroup
				for client := range 5 {
					clients.Go(func() {
						for range 4 {
							verb, began := tc.verbs[rand.IntN(len(tc.verbs))], time.Now()
							out := w.perform(ctx, q.ID, verb)
							mu.Lock()
							ops = append(ops, porcupine.Operation{ClientId: client, Input: verb, Output: out, Call: began.UnixNano(), Return: time.Now().UnixNano()})
							mu.Unlock()
						}
					})
				}
				clients.Wait()
				w.bookings.Before, w.bookings.After = nil, nil
				w.resumeAccepts(time.Hour)
				if got := w.readQuote(ctx, q.ID); got.Status == "accepted" {
					w.ended(q, 1, 1, 1)
				} else {
					w.ended(q, 0, 0, 0)
				}
				if result := porcupine.CheckOperations(offeredModel, ops); !result {
					slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
					var lines []string
					for _, op := range ops {
						lines = append(lines, fmt.Sprintf("%d–%d client %d: %s", (op.Call-ops[0].Call)/1000, (op.Return-ops[0].Call)/1000, op.ClientId, offeredModel.DescribeOperation(op.Input, op.Output)))
					}
					t.Fatalf("no order of\n%s", strings.Join(lines, "\n"))
				}
			})
		}
	}
}
