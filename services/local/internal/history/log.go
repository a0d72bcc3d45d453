package history

import (
	"fmt"
	"slices"
)

// log checks EVENT-1, EVENT-2 and KEY-1: each object has one event for each of its versions 1 to n, with the version in its body, each
// write that changed something has its event, and a write that was refused has none.
func (h *histories) log() (found []Violation) {
	for _, o := range h.sorted() {
		found = append(found, o.versions()...)
	}
	for _, op := range h.ops {
		if !op.Write {
			continue
		}
		caused := h.byKey[op.Key]
		switch {
		case op.Outcome == Refused && slices.ContainsFunc(caused, func(e Event) bool { return !e.Observed }):
			found = append(found, Violation{Claim: "EVENT-1", Text: "a write that was refused has an event", Operations: []Operation{op}, Events: caused})
		case op.Outcome == OK && op.Changes && len(caused) == 0:
			found = append(found, Violation{Claim: "EVENT-1", Text: "an acknowledged change has no event", Operations: []Operation{op}})
		}
		found = append(found, h.once(op, caused)...)
	}
	return found
}

// once checks that a write with a key created at most one object of each type.
func (h *histories) once(op Operation, caused []Event) (found []Violation) {
	created := map[string]Event{}
	for _, e := range caused {
		if e.Version != 1 {
			continue
		}
		if other, twice := created[e.Type]; twice && other.Object != e.Object {
			found = append(found, Violation{
				Claim: "KEY-1", Text: "a write with one key created two objects",
				Operations: []Operation{op}, Events: []Event{other, e},
			})
		}
		created[e.Type] = e
	}
	return found
}

// versions checks the events of an object.
func (o *object) versions() (found []Violation) {
	last := Event{Object: o.id}
	for _, e := range o.events {
		switch {
		case e.Version == last.Version:
			found = append(found, Violation{Claim: "EVENT-1", Text: "a version has two events", Events: []Event{last, e}})
		case e.Version != last.Version+1:
			found = append(found, Violation{
				Claim: "EVENT-1", Text: fmt.Sprintf("%s has no event of version %d", o.id, last.Version+1),
				Operations: o.around(last.Version+1, e.Version), Events: []Event{e},
			})
		}
		if e.BodyVersion != 0 && e.BodyVersion != e.Version {
			found = append(found, Violation{Claim: "EVENT-2", Text: fmt.Sprintf("the body has version %d", e.BodyVersion), Events: []Event{e}})
		}
		last = e
	}
	for _, r := range o.reads {
		if r.Version > last.Version {
			found = append(found, Violation{
				Claim: "EVENT-1", Text: fmt.Sprintf("%v was shown and has no event: the event is missing, or the change was not committed (G1a)", r.State),
				Operations: []Operation{*r.op},
			})
			break
		}
	}
	return found
}

// around returns operations that show versions from one to another.
func (o *object) around(from, to int64) (ops []Operation) {
	for _, r := range o.reads {
		if r.Version >= from && r.Version < to && len(ops) < 5 {
			ops = append(ops, *r.op)
		}
	}
	return ops
}

// content checks that responses and events that show the same version show the same object (OBJ-2), that a write with If-Match changed
// the version that it requires, and that the response to a change shows the object after it (OBJ-1).
func (h *histories) content() (found []Violation) {
	for _, o := range h.sorted() {
		if o.deleted == 0 { // otherwise its personal data is also erased in events and in stored responses
			found = append(found, o.shown()...)
		}
	}
	for _, op := range h.ops {
		for _, e := range h.byKey[op.Key] {
			found = append(found, decided(op, e)...)
		}
	}
	return found
}

// shown compares what is shown of each version.
func (o *object) shown() []Violation {
	first := map[int64]observation{}
	for _, e := range o.events {
		first[e.Version] = observation{State: State{e.Object, e.Version, e.Digest, e.Body}}
	}
	for _, r := range o.reads {
		other := first[r.Version]
		switch {
		case r.Digest == 0 || r.Digest == other.Digest:
		case other.Digest == 0:
			first[r.Version] = r
		default:
			v := Violation{
				Claim: "OBJ-2", Text: fmt.Sprintf("%v is shown in two ways: %v", r.State, differing(other.Body, r.Body)),
				Operations: []Operation{*r.op},
			}
			if other.op != nil {
				v.Operations = append(v.Operations, *other.op)
			} else {
				v.Events = o.at(r.Version)
			}
			return []Violation{v}
		}
	}
	return nil
}

// decided checks the version that an operation changed.
func decided(op Operation, e Event) (found []Violation) {
	if e.Object == op.IfMatch.Object && e.Version != op.IfMatch.Version+1 && !e.Observed {
		found = append(found, Violation{
			Claim: "OBJ-2", Text: fmt.Sprintf("a write with If-Match took effect, but not on %v", op.IfMatch),
			Operations: []Operation{op}, Events: []Event{e},
		})
	}
	for _, s := range op.Seen {
		if op.Outcome == OK && s.Object == e.Object && s.Version < e.Version && !e.Deleted {
			found = append(found, Violation{Claim: "OBJ-1", Text: "the response to a change does not show it", Operations: []Operation{op}, Events: []Event{e}})
		}
	}
	return found
}

// at returns the events of a version.
func (o *object) at(version int64) (events []Event) {
	for _, e := range o.events {
		if e.Version == version {
			events = append(events, e)
		}
	}
	return events
}
