package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "holdfast.dev/proto/events/v1"
)

// script is a hand-made history. Operations take a second each; their keys and times follow from their order.
type script struct {
	ops    []Operation
	events []Event
}

func (s *script) op(o Operation, from, to int) Operation {
	if o.Key == "" {
		o.Key = fmt.Sprintf("op%d", len(s.ops))
	}
	if o.Session == "" {
		o.Session = "key_1"
	}
	if o.Worker == "" {
		o.Worker = o.Key // no order but the one of the session
	}
	o.Call, o.Return = time.Duration(from)*time.Second, time.Duration(to)*time.Second
	s.ops = append(s.ops, o)
	return o
}

func seen(states ...State) []State { return states }

func at(object string, version int64) State { return State{Object: object, Version: version} }

// write is a write with its event.
func (s *script) write(key, object string, version int64, from, to int) {
	s.op(Operation{Key: key, Name: "write", Write: true, Changes: true, Session: "key_" + key, Seen: seen(at(object, version))}, from, to)
	s.event(key, object, version)
}

func (s *script) event(key, object string, version int64) *Event {
	s.events = append(s.events, Event{
		ID: fmt.Sprintf("evt_%s_%d_%s", object, version, key), Object: object, Type: "x.updated", Topic: "customers", Key: key,
		Version: version, BodyVersion: version,
	})
	return &s.events[len(s.events)-1]
}

func (s *script) read(session, worker string, from, to int, states ...State) {
	s.op(Operation{Name: "read", Session: session, Worker: worker, Seen: states}, from, to)
}

// expect checks that a history contradicts exactly these claims, and that a violation contains the text.
func (s *script) expect(t *testing.T, text string, claims ...string) {
	t.Helper()
	found := map[string]bool{}
	var all []string
	for _, v := range Check(s.ops, s.events).Violations {
		found[v.Claim] = true
		all = append(all, v.String())
	}
	for _, claim := range claims {
		if !found[claim] {
			t.Errorf("%s is not reported", claim)
		}
		delete(found, claim)
	}
	for claim := range found {
		t.Errorf("%s is reported", claim)
	}
	if report := strings.Join(all, "\n"); !strings.Contains(report, text) || t.Failed() {
		t.Errorf("reported, without %q:\n%s", text, report)
	}
}

func TestARightHistory(t *testing.T) {
	t.Parallel()
	var s script
	s.write("a", "bk_1", 1, 1, 2)
	s.write("b", "bk_1", 2, 3, 5)
	s.write("c", "bk_1", 4, 4, 6)                                             // at the same time as b, and before it in the response of b
	s.event("", "bk_1", 3)                                                    // in the background
	s.read("key_1", "w1", 4, 5, at("bk_1", 1))                                // b did not take effect yet
	s.read("key_1", "w2", 4, 7, at("bk_1", 4))                                //
	s.op(Operation{Key: "d", Write: true, Outcome: Unknown}, 8, 9)            // took effect later
	s.read("key_1", "w1", 10, 11, at("bk_1", 4))                              //
	s.read("key_1", "w1", 12, 13, at("bk_1", 5))                              //
	s.event("d", "bk_1", 5)                                                   //
	s.op(Operation{Key: "e", Write: true, Outcome: Unknown}, 8, 9)            // never took effect
	s.op(Operation{Key: "f", Write: true, Outcome: Refused}, 14, 15)          //
	s.op(Operation{Key: "g", Write: true, Seen: seen(at("bk_1", 5))}, 16, 17) // changes nothing
	s.events = append(s.events, s.events[0])                                  // delivered twice
	s.write("h", "cl_1", 1, 18, 19)                                           //
	s.op(Operation{Key: "i", Write: true, Seen: seen(at("cl_1", 0))}, 20, 21) // deletes it
	s.event("i", "cl_1", 2).Deleted = true                                    //
	s.read("key_1", "w1", 22, 23, at("cl_1", 0))                              //
	s.expect(t, "")
	r := Check(s.ops, s.events)
	if r.Operations != len(s.ops) || r.Unknown != 2 || r.Objects != 2 || r.Edges == 0 {
		t.Errorf("%+v", r)
	}
}

func TestTheLog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(s *script)
		text   string
		claims []string
	}{
		"the last event is missing": {func(s *script) { s.events = s.events[:2] }, "bk_1 version 3 was shown and has no event", []string{"EVENT-1"}},
		"an event is missing":       {func(s *script) { s.events = append(s.events[:1], s.events[2]) }, "bk_1 has no event of version 2", []string{"EVENT-1"}},
		"a change has no event": {func(s *script) {
			s.op(Operation{Key: "d", Write: true, Changes: true, Seen: seen(at("bk_1", 3))}, 7, 8)
		}, "an acknowledged change has no event", []string{"EVENT-1"}},
		"two events of a version":      {func(s *script) { s.event("", "bk_1", 2) }, "two events", []string{"EVENT-1"}},
		"the body has another version": {func(s *script) { s.events[1].BodyVersion = 3 }, "the body has version 3", []string{"EVENT-2"}},
		"a refused write has an event": {func(s *script) {
			s.op(Operation{Key: "d", Write: true, Outcome: Refused}, 7, 8)
			s.event("d", "bk_1", 4)
		}, "a write that was refused has an event", []string{"EVENT-1"}},
		"a write creates two objects": {func(s *script) { s.event("a", "bk_2", 1) }, "created two objects", []string{"KEY-1"}},
		"a version is shown in two ways": {func(s *script) {
			s.events[2].Digest = 7
			s.read("key_1", "w1", 7, 8, State{Object: "bk_1", Version: 3, Digest: 8})
		}, "bk_1 version 3 is shown in two ways", []string{"OBJ-2"}},
		"two responses differ": {func(s *script) {
			s.read("key_1", "w1", 7, 8, State{Object: "bk_1", Version: 3, Digest: 8})
			s.read("key_1", "w2", 7, 8, State{Object: "bk_1", Version: 3, Digest: 9})
		}, "bk_1 version 3 is shown in two ways", []string{"OBJ-2"}},
		"If-Match is ignored": {func(s *script) {
			s.op(Operation{Key: "d", Write: true, IfMatch: at("bk_1", 2), Seen: seen(at("bk_1", 4))}, 7, 8)
			s.event("d", "bk_1", 4)
		}, "not on bk_1 version 2", []string{"OBJ-2"}},
		"a response shows the object before the change": {func(s *script) {
			s.op(Operation{Key: "d", Write: true, Seen: seen(at("bk_1", 3))}, 7, 8)
			s.event("d", "bk_1", 4)
		}, "the response to a change does not show it", []string{"OBJ-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s script
			s.write("a", "bk_1", 1, 1, 2)
			s.write("b", "bk_1", 2, 3, 4)
			s.write("c", "bk_1", 3, 5, 6)
			tc.change(&s)
			s.expect(t, tc.text, tc.claims...)
		})
	}
}

func TestStaleReads(t *testing.T) {
	t.Parallel()
	var s script
	s.write("a", "bk_1", 1, 1, 2)
	s.write("b", "bk_1", 2, 3, 4)
	s.read("key_9", "w9", 5, 6, at("bk_1", 1)) // another credential than those of the writes
	s.expect(t, "bk_1 is not linearizable", "OBJ-1")
	s.read("key_9", "w9", 7, 8, at("bk_1", 2))
	s.read("key_9", "w8", 9, 10, at("bk_1", 1)) // from another replica
	s.expect(t, "reads go back: bk_1 version 1 after version 2", "OBJ-1", "SESSION-1")
	var own script
	own.write("a", "bk_1", 1, 1, 2)
	own.write("b", "bk_1", 2, 3, 4)
	own.read("key_b", "w9", 5, 6, at("bk_1", 1))
	own.expect(t, "a write is not read: bk_1 version 1 after version 2", "OBJ-1", "SESSION-1")
	var gone script
	gone.write("a", "bk_1", 1, 1, 2)
	gone.read("key_9", "w9", 3, 4, at("bk_1", 0)) // not found after it was created
	gone.expect(t, "not linearizable", "OBJ-1")
	var early script
	early.write("a", "bk_1", 1, 1, 2)
	early.write("b", "bk_1", 2, 5, 6)
	early.read("key_9", "w9", 3, 4, at("bk_1", 2)) // before the request of the write
	early.expect(t, "not linearizable", "OBJ-1")
	var back script
	back.write("a", "cl_1", 1, 1, 2)
	back.op(Operation{Key: "b", Write: true}, 3, 4)
	back.event("b", "cl_1", 2).Deleted = true
	back.read("key_9", "w9", 5, 6, at("cl_1", 1)) // after it was deleted
	back.expect(t, "not linearizable", "OBJ-1")
}

// accept is a quote that is accepted: bookings creates the booking first, and then customers changes the quote and opens an invoice.
func accept(s *script) {
	s.write("q", "qt_1", 1, 1, 2)
	s.op(Operation{Key: "acc", Name: "accept", Write: true, Seen: seen(at("qt_1", 2))}, 10, 20)
	b := s.event("qt_1", "bk_1", 1)
	b.Topic = "bookings"
	s.event("acc", "qt_1", 2).Precedes = "bookings qt_1"
	s.event("acc", "inv_1", 1)
}

func TestSeveralObjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reads  func(s *script)
		text   string
		claims []string
	}{
		"the booking first": {func(s *script) {
			s.read("key_1", "w1", 11, 12, at("bk_1", 1))
			s.read("key_1", "w1", 13, 14, at("qt_1", 1))
			s.read("key_1", "w1", 15, 16, at("qt_1", 2))
			s.read("key_1", "w1", 17, 18, at("inv_1", 1))
		}, "", nil},
		"an accepted quote without its invoice": {func(s *script) {
			s.read("key_1", "w1", 11, 12, at("qt_1", 2))
			s.read("key_1", "w1", 13, 14, at("inv_1", 0))
		}, "G-single: a read misses a change that it depends on", []string{"ACCEPT-1"}},
		"an accepted quote without its booking": {func(s *script) {
			s.read("key_1", "w1", 11, 12, at("qt_1", 2))
			s.read("key_1", "w1", 13, 14, at("bk_1", 0))
		}, "G-single: a read misses a change that it depends on", []string{"ACCEPT-1"}},
		"both in one response": {func(s *script) {
			s.read("key_1", "w1", 11, 12, at("qt_1", 2), at("inv_1", 0))
		}, "fractured read", []string{"ACCEPT-1"}},
		"two readers disagree": {func(s *script) { // about the order of two writes
			s.op(Operation{Key: "x", Write: true, Seen: seen(at("un_1", 1))}, 10, 20)
			s.event("x", "un_1", 1)
			s.read("key_1", "w1", 11, 14, at("qt_1", 2), at("un_1", 0))
			s.read("key_2", "w2", 11, 14, at("qt_1", 1), at("un_1", 1))
		}, "G2: a cycle with several rw edges", []string{"ACCEPT-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s script
			accept(&s)
			tc.reads(&s)
			s.expect(t, tc.text, tc.claims...)
		})
	}
}

func TestCyclesOfWrites(t *testing.T) {
	t.Parallel()
	var lost script
	lost.write("a", "bk_1", 1, 1, 2)
	lost.write("b", "bk_1", 2, 3, 6)
	lost.write("c", "bk_1", 3, 4, 5)
	for i, digest := range [][2]uint64{{0, 10}, {10, 20}, {10, 30}} { // c was decided on version 1
		lost.events[i].Before, lost.events[i].After = digest[0], digest[1]
	}
	lost.expect(t, "lost update", "OBJ-1")
	var writes script // two transactions that changed two objects in two orders
	writes.write("a", "inv_1", 1, 1, 2)
	writes.write("b", "cn_1", 1, 1, 2)
	writes.op(Operation{Key: "c", Write: true}, 3, 6)
	writes.op(Operation{Key: "d", Write: true}, 3, 6)
	writes.event("c", "inv_1", 2)
	writes.event("d", "inv_1", 3)
	writes.event("d", "cn_1", 2)
	writes.event("c", "cn_1", 3)
	writes.expect(t, "G0: writes in a cycle", "OBJ-1")
	var flow script // each one read what the other one wrote
	flow.op(Operation{Key: "c", Write: true, Seen: seen(at("inv_1", 1))}, 3, 6)
	flow.op(Operation{Key: "d", Write: true, Seen: seen(at("cn_1", 1))}, 3, 6)
	flow.event("c", "inv_1", 1)
	flow.event("d", "cn_1", 1)
	flow.events[0].Precedes, flow.events[1].Precedes = "customers d", "customers c"
	flow.expect(t, "G1c: circular information flow", "OBJ-1")
}

func TestBodies(t *testing.T) {
	t.Parallel()
	shown := `{"id":"bk_1","object":"booking","version":2,"notes":"b","amount_paid":%d,"created_at":"2030-01-01T00:00:00Z","updated_at":"2030-01-02T00:00:00Z"}`
	a, err := StateOf(fmt.Appendf(nil, shown, 0))
	if err != nil {
		t.Fatal(err)
	}
	b, err := StateOf(fmt.Appendf(nil, shown, 5))
	if err != nil || a.Digest != b.Digest || a.Object != "bk_1" || a.Version != 2 {
		t.Errorf("%+v and %+v, %v", a, b, err)
	}
	event := func(version int64, notes, previous string) Event {
		e, err := EventOf("bookings", &eventsv1.Event{
			Id: "evt", ObjectId: "bk_1", Type: "booking.updated", ResourceVersion: version, IdempotencyKey: "k", PreviousAttributes: []byte(previous),
			Object: fmt.Appendf(nil, `{"id":"bk_1","object":"booking","version":%d,"notes":%q,"amount_paid":0,"created_at":"2030-01-01T00:00:00Z","updated_at":"2030-01-0%dT00:00:00Z"}`, version, notes, version),
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first, second := event(1, "a", `{}`), event(2, "b", `{"notes":"a"}`)
	if second.Digest != a.Digest || second.BodyVersion != 2 || second.Before != first.After || second.transaction() != "bookings k" {
		t.Errorf("%+v after %+v", second, first)
	}
	if other := event(2, "b", `{"notes":"c"}`); other.Before == first.After {
		t.Error("another previous value is not noticed")
	}
	created, err := EventOf("bookings", &eventsv1.Event{Type: "booking.created", Object: []byte(`{"quote_id":"qt_1"}`), PreviousAttributes: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := EventOf("customers", &eventsv1.Event{Type: "quote.accepted", ObjectId: "qt_1", Object: []byte(`{}`), PreviousAttributes: []byte(`{}`)})
	if err != nil || accepted.Precedes != created.transaction() {
		t.Errorf("%+v after %+v, %v", accepted, created, err)
	}
	if _, err := StateOf([]byte("{")); err == nil {
		t.Error("no error for a response that is cut")
	}
}
