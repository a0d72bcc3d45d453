package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// access is an input of the register of an object: a write to a version or a read of one.
type access struct {
	version int64
	write   bool
}

// register is the model of an object: its state is its version, and a write raises it by 1.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, _ any) (bool, any) {
		version, a := state.(int64), in.(access)
		if a.write {
			return version+1 == a.version, a.version
		}
		return version == a.version, version
	},
	DescribeOperation: func(in, _ any) string { return fmt.Sprintf("%+v", in) },
}

// searchLimit is the longest time for one object. The versions leave little choice, so that a search ends at once.
const searchLimit = 20 * time.Second

// registers checks OBJ-1: the operations on each object have an order that respects their times, in which each read shows the last write.
func (h *histories) registers() (found []Violation) {
	keys := map[string]*Operation{}
	for i := range h.ops {
		if h.ops[i].Write {
			keys[h.ops[i].Key] = &h.ops[i]
		}
	}
	for _, o := range h.sorted() {
		result, info := porcupine.CheckOperationsVerbose(register, o.accesses(keys), searchLimit)
		if result == porcupine.Ok {
			continue
		}
		found = append(found, Violation{
			Claim: "OBJ-1", Text: fmt.Sprintf("%s is not linearizable (%v): %s", o.id, result, longest(info)),
			Operations: o.stale(),
		})
	}
	return found
}

// longest describes how far an order of the operations exists.
func longest(info porcupine.LinearizationInfo) string {
	best := 0
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			best = max(best, len(order))
		}
	}
	return fmt.Sprintf("the longest order has %d operations", best)
}

// accesses returns the operations on an object for the model. A change in the background, one whose request has no clear outcome, and one
// without an event can take effect at any time after its request.
func (o *object) accesses(keys map[string]*Operation) (all []porcupine.Operation) {
	add := func(a access, from, to time.Duration) {
		all = append(all, porcupine.Operation{ClientId: len(all), Input: a, Call: int64(from), Return: int64(to)})
	}
	last := int64(0)
	for _, e := range o.events {
		for last < e.Version-1 { // a missing event is another violation
			last++
			add(access{last, true}, 0, math.MaxInt64)
		}
		if e.Version <= last {
			continue
		}
		last = e.Version
		from, to := time.Duration(0), time.Duration(math.MaxInt64)
		if op := keys[e.Key]; op != nil {
			from = op.Call
			if op.Outcome == OK {
				to = op.Return
			}
		}
		add(access{e.Version, true}, from, to)
	}
	for _, r := range o.reads {
		for last < r.Version {
			last++
			add(access{last, true}, 0, math.MaxInt64)
		}
		add(access{r.Version, false}, r.op.Call, r.op.Return)
	}
	return all
}

// stale returns the first operation that shows an older version than one that ended before it began, with that one.
func (o *object) stale() []Operation {
	for _, late := range o.reads {
		for _, early := range o.reads {
			if early.op.Return < late.op.Call && early.Version > late.Version {
				return []Operation{*early.op, *late.op}
			}
		}
	}
	return o.around(0, math.MaxInt64)
}
