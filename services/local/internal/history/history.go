// Package history checks what clients and the event log saw of objects against the claims of docs/consistency.md. Each object has a
// version, and each version has one event, so that the order of the changes is known.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is what a client knows about an operation.
type Outcome int

// The outcomes of an operation.
const (
	OK      Outcome = iota
	Refused         // the response of the only attempt was an error that is no outage: the operation has no effect
	Unknown         // the operation took effect, or takes effect later, or never
)

// String implements fmt.Stringer.
func (o Outcome) String() string { return [...]string{"ok", "refused", "unknown"}[o] }

// Operation is one request of a client, with all its repetitions.
type Operation struct {
	Key          string // Idempotency-Key of a write, or a unique name of a read
	Session      string // credential
	Worker       string // runs one operation after the other
	Name         string // such as "POST /bookings"
	Write        bool
	Changes      bool // a write that always changes an object if it is OK
	Outcome      Outcome
	Call, Return time.Duration // since the start of the run
	Seen         []State       // the objects in the response of an OK operation
	IfMatch      State         // the state that a write requires; its object is empty if there is none
}

// State is an object at one of its versions. Version 0 is an object that does not exist.
type State struct {
	Object  string
	Version int64
	Digest  uint64 // of the body without what follows from other objects; 0: not known
	Body    []byte // as in the response; nil: not known
}

// Event is an event of the event log. Digests are 0 if the event has no body.
type Event struct {
	ID, Object, Type string
	Topic            string // of the service that made the change
	Key              string // Idempotency-Key of the request that caused it; empty: a background change
	Version          int64  // resource_version
	BodyVersion      int64  // version in the body; 0: none
	Deleted          bool   // the object does not exist afterwards
	Observed         bool   // it records what Stripe or the owner of an amount reported, also if the request that asked was refused
	Digest           uint64 // like that of State
	Before, After    uint64 // of the body before and after the change, without version and time of the change
	Body, Previous   []byte // the object after the change, and the properties that it changed
	Precedes         string // the transaction of another service that took effect before this change; empty: none
}

// transaction names the database transaction that an event is a part of.
func (e Event) transaction() string {
	if e.Key == "" || e.Observed {
		return "background change " + e.ID
	}
	return e.Topic + " " + e.Key
}

// Violation is a claim that the history contradicts.
type Violation struct {
	Claim      string // ID in docs/consistency.md
	Text       string
	Operations []Operation
	Events     []Event
}

// String implements fmt.Stringer.
func (v Violation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s", v.Claim, v.Text)
	for _, o := range v.Operations {
		fmt.Fprintf(&out, "\n  %v", o)
	}
	for _, e := range v.Events {
		fmt.Fprintf(&out, "\n  %v", e)
	}
	return out.String()
}

// String implements fmt.Stringer.
func (o Operation) String() string {
	seen := make([]string, 0, len(o.Seen))
	for _, s := range o.Seen[:min(len(o.Seen), 3)] {
		seen = append(seen, s.String())
	}
	return fmt.Sprintf("%v–%v %s %s (%s, %s): %v %s", o.Call.Round(time.Microsecond), o.Return.Round(time.Microsecond), o.Name, o.Key, o.Session, o.Worker,
		o.Outcome, strings.Join(seen, ", "))
}

// String implements fmt.Stringer.
func (s State) String() string { return fmt.Sprintf("%s version %d", s.Object, s.Version) }

// String implements fmt.Stringer.
func (e Event) String() string {
	return fmt.Sprintf("event %s %s of %s version %d, by %s, before: %.400s", e.ID, e.Type, e.Object, e.Version, e.transaction(), e.Previous)
}

// Report is the result of a check.
type Report struct {
	Operations, Unknown, Objects, Edges int
	Violations                          []Violation
}

// Add adds the result of another check.
func (r *Report) Add(o Report) {
	r.Operations += o.Operations
	r.Unknown += o.Unknown
	r.Objects += o.Objects
	r.Edges += o.Edges
	r.Violations = append(r.Violations, o.Violations...)
}

// Check checks complete histories of objects: all operations on them, and all their events. An event can be in the list twice.
func Check(ops []Operation, events []Event) Report {
	h := index(ops, events)
	r := Report{Operations: len(ops), Objects: len(h.objects)}
	for _, o := range ops {
		if o.Outcome == Unknown {
			r.Unknown++
		}
	}
	r.Violations = slices.Concat(h.log(), h.content(), h.registers(), h.sessions())
	edges, cycles := h.cycles()
	r.Edges, r.Violations = edges, append(r.Violations, cycles...)
	return r
}

// object is what is known of one object.
type object struct {
	id      string
	events  []Event       // by version
	deleted int64         // the version without the object; 0: none
	reads   []observation // OK operations that show it, by the time of their call
}

// observation is an object in the response of an operation.
type observation struct {
	op *Operation
	State
}

// histories are operations and events by object.
type histories struct {
	ops     []Operation
	objects map[string]*object
	byKey   map[string][]Event
}

func index(ops []Operation, events []Event) *histories {
	h := &histories{ops: slices.Clone(ops), objects: map[string]*object{}, byKey: map[string][]Event{}}
	slices.SortStableFunc(h.ops, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	known := map[string]bool{}
	for _, e := range events {
		if known[e.ID] {
			continue
		}
		known[e.ID] = true
		o := h.object(e.Object)
		o.events = append(o.events, e)
		if e.Deleted {
			o.deleted = e.Version
		}
		if e.Key != "" {
			h.byKey[e.Key] = append(h.byKey[e.Key], e)
		}
	}
	for _, o := range h.objects {
		slices.SortStableFunc(o.events, func(a, b Event) int { return cmp.Compare(a.Version, b.Version) })
	}
	for i := range h.ops {
		op := &h.ops[i]
		for _, s := range op.Seen {
			if op.Outcome != OK || s.Version == 0 && h.objects[s.Object] == nil { // of another history
				continue
			}
			o := h.object(s.Object)
			if s.Version == 0 && o.deleted != 0 {
				s.Version = o.deleted
				o.adopt(op)
			}
			o.reads = append(o.reads, observation{op, s})
		}
	}
	return h
}

func (h *histories) object(id string) *object {
	if h.objects[id] == nil {
		h.objects[id] = &object{id: id}
	}
	return h.objects[id]
}

// adopt makes an operation that deletes the object the cause of the last event, which has no key: a request to delete has none.
func (o *object) adopt(op *Operation) {
	last := &o.events[len(o.events)-1]
	if op.Write && last.Deleted && last.Key == "" {
		last.Key = op.Key
	}
}

// sorted returns the objects by ID.
func (h *histories) sorted() []*object {
	all := make([]*object, 0, len(h.objects))
	for _, o := range h.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *object) int { return cmp.Compare(a.id, b.id) })
	return all
}
