package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/history"
)

// TestHistory drives the writes and reads of the API from several clients with several credentials while processes, networks and servers
// fail. It checks what clients and the event log saw against the claims of docs/consistency.md. `make history MINUTES=60` runs it for
// longer, and with more kinds of faults.
func TestHistory(t *testing.T) {
	onMachine(t)
	long, limit := os.Getenv("HISTORY") != "", 20*time.Second
	if long {
		minutes, err := strconv.ParseFloat(os.Getenv("HISTORY"), 64)
		if err != nil {
			t.Fatal(err)
		}
		limit = time.Duration(minutes * float64(time.Minute))
	}
	h := newHistoryRun(t, long)
	h.run(t, limit)
	h.finish(t, limit)
}

// historyRun is a run of TestHistory.
type historyRun struct {
	p       *platform
	nemesis *nemesis
	began   time.Time
	workers []*historyWorker
	settler *historyWorker // reads the objects of an epoch at its end
	log     *eventLog
	patient time.Duration // the longest time until an event is in the log
	reads   atomic.Int64
	epochs  sync.WaitGroup // that are being settled

	mu      sync.Mutex
	current *epoch
	report  history.Report
	refused int
}

// epochTime is the time after which clients turn to new objects. The old ones are checked and forgotten.
const epochTime = 12 * time.Second

func newHistoryRun(t *testing.T, long bool, faults ...seeded) *historyRun {
	t.Helper()
	h := &historyRun{patient: time.Minute}
	h.p, h.nemesis = newNemesis(t, long, faults...)
	keys := map[string]string{"demo": h.p.env["DEMO_TEST_KEY"]}
	for _, name := range []string{"second", "third"} {
		var key struct{ Secret string }
		h.p.identity(t, &key, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all", "--json")
		keys[name] = key.Secret
	}
	names := slices.Sorted(maps.Keys(keys))
	h.settler = &historyWorker{h: h, client: h.p.with(t, keys["demo"]), session: "demo", name: "settler"}
	bases := map[string][2]string{}
	for _, session := range names {
		bases[session] = h.nemesis.bases(t, session)
	}
	for n := range 9 {
		session := names[n%len(names)]
		c := &client{base: bases[session][n%2], key: keys[session], checker: h.settler.client.checker}
		h.workers = append(h.workers, &historyWorker{h: h, client: c, session: session, name: fmt.Sprintf("w%d", n)})
	}
	h.log = follow(t, h.p)
	h.current = newEpoch(0)
	h.began = time.Now()
	return h
}

// run runs the clients and the nemesis.
func (h *historyRun) run(t *testing.T, limit time.Duration) {
	t.Helper()
	var loads []*load
	for _, w := range h.workers {
		loads = append(loads, goOn(t, 1, func() { w.act(t) }))
	}
	faults := goOn(t, 1, func() { h.nemesis.strike(t, h) })
	rotation, progress := time.NewTicker(epochTime), time.NewTicker(30*time.Second)
	defer rotation.Stop()
	defer progress.Stop()
	for end := time.After(limit); end != nil; {
		select {
		case <-rotation.C:
			h.rotate(t)
		case <-progress.C:
			t.Log(h.summary())
		case <-end:
			end = nil
		}
	}
	for _, l := range loads {
		l.stop()
	}
	faults.stop()
	h.nemesis.end(t)
	h.rotate(t)
	h.epochs.Wait()
}

// rotate begins an epoch and checks the one before in the background.
func (h *historyRun) rotate(t *testing.T) {
	h.mu.Lock()
	old := h.current
	h.current = newEpoch(old.number + 1)
	h.mu.Unlock()
	h.epochs.Go(func() { h.settle(t, old) })
}

// enter returns the present epoch. The caller leaves it.
func (h *historyRun) enter() *epoch {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.active.Add(1)
	return h.current
}

func (h *historyRun) now() time.Duration { return time.Since(h.began) }

// violate reports a violation that a client sees at once.
func (h *historyRun) violate(claim, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.report.Violations = append(h.report.Violations, history.Violation{Claim: claim, Text: fmt.Sprintf(format, args...)})
}

// settle checks an epoch when its last operation has ended and its events are in the log.
func (h *historyRun) settle(t *testing.T, e *epoch) {
	for e.active.Load() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	slots := map[string]string{}
	for _, id := range e.all() {
		a := h.settler.get(t, e, id)
		if other := overlaps(slots, a.Body); other != "" {
			h.violate("SLOT-1", "%s has the same time of the same unit as %s", id, other)
		}
	}
	events, took := h.log.take(e, h.patient)
	if took > 10*time.Second {
		t.Logf("epoch %d: its events were in the log after %v", e.number, took.Round(time.Second))
	}
	r := history.Check(e.ops, events)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range e.ops {
		if op.Outcome == history.Refused {
			h.refused++
		}
	}
	for _, v := range r.Violations[:min(len(r.Violations), 20)] {
		t.Logf("epoch %d: %v", e.number, v)
	}
	h.report.Add(r)
}

// overlaps records the hours of a booking that holds its unit. It returns another booking of one of these hours.
func overlaps(slots map[string]string, body []byte) (other string) {
	var b struct {
		ID, Object, Status string
		Unit               string    `json:"unit_id"`
		From               time.Time `json:"starts_at"`
		To                 time.Time `json:"ends_at"`
	}
	if json.Unmarshal(body, &b) != nil || b.Object != "booking" || b.Unit == "" || b.Status != "pending" && b.Status != "confirmed" {
		return ""
	}
	for at := b.From; at.Before(b.To); at = at.Add(time.Hour) {
		slot := b.Unit + at.String()
		if slots[slot] != "" {
			other = slots[slot]
		}
		slots[slot] = b.ID
	}
	return other
}

func (h *historyRun) summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%v: %d operations checked (%d refused, %d with unknown outcome) in epochs 0 to %d, %d objects, %d edges, %d violations; faults %v",
		h.now().Round(time.Second), h.report.Operations, h.refused, h.report.Unknown, h.current.number-1, h.report.Objects, h.report.Edges,
		len(h.report.Violations), h.nemesis.counts())
}

// finish checks the whole platform, shows the result, and appends it to the file PROOF_RESULTS.
func (h *historyRun) finish(t *testing.T, limit time.Duration) {
	t.Helper()
	noGaps(t, h.p)
	var differ []string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		differ = slices.DeleteFunc(h.p.differences(t), notCompared)
		if len(differ) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, d := range differ {
		h.violate("LAG-1", "the services still differ after 2 minutes: %s", d)
	}
	h.money(t)
	t.Log(h.summary())
	for i, v := range h.report.Violations {
		if i == 20 {
			t.Errorf("and %d more", len(h.report.Violations)-i)
			break
		}
		t.Error(v)
	}
	if h.report.Operations < 20*int(limit.Seconds()) || h.report.Objects == 0 || h.report.Edges == 0 {
		t.Errorf("too little was done: %+v", h.report)
	}
	record(t, "history", time.Now().Add(-limit), map[string]any{
		"operations": h.report.Operations, "unknown": h.report.Unknown, "faults": h.nemesis.counts(), "objects": h.report.Objects,
		"violations": len(h.report.Violations),
	})
}

// notCompared reports whether a difference is expected here: Stripe's amounts with refunds (money compares them without), invoices that were
// deleted or erased, and bookings without a price.
func notCompared(difference string) bool {
	return strings.HasPrefix(difference, "payments: Stripe") || strings.HasPrefix(difference, "bookings: invoices") || strings.HasPrefix(difference, "paid twice")
}

// money compares what payments received with Stripe.
func (h *historyRun) money(t *testing.T) {
	t.Helper()
	received := map[string]string{}
	for _, row := range h.p.rows(t, "payments", `select gateway_id || ' ' || received from payment_intents where received > 0`) {
		id, amount, _ := strings.Cut(row, " ")
		received[id] = amount
	}
	for id, c := range h.p.charges(t) {
		if c.Received > 0 && received[id] != strconv.FormatInt(c.Received, 10) {
			h.violate("MONEY-1", "Stripe received %d for %s, and payments has %q", c.Received, id, received[id])
		}
		delete(received, id)
	}
	for id, amount := range received {
		h.violate("MONEY-1", "payments has %s for %s, which Stripe does not know", amount, id)
	}
}

// epoch is the objects that clients use at one time, and the operations on them.
type epoch struct {
	number int
	active atomic.Int64 // operations under way

	mu       sync.Mutex
	pool     map[string][]string // ids by prefix
	versions map[string]int64    // the newest that was seen
	payments map[string][]string // of invoices
	intents  map[string]intent
	ops      []history.Operation
}

func newEpoch(number int) *epoch {
	return &epoch{number: number, pool: map[string][]string{}, versions: map[string]int64{}, payments: map[string][]string{}, intents: map[string]intent{}}
}

// add adds an object that a response shows or names.
func (e *epoch) add(id string, version int64) {
	if id == "" {
		return
	}
	if _, known := e.versions[id]; !known {
		prefix, _, _ := strings.Cut(id, "_")
		e.pool[prefix] = append(e.pool[prefix], id)
	}
	e.versions[id] = max(e.versions[id], version)
}

func (e *epoch) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.versions))
}

// pick returns an object: one of the last few, which other clients use too. It returns "" if there is none.
func (e *epoch) pick(prefix string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := e.pool[prefix]
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1-rand.IntN(min(len(ids), 5))]
}

func (e *epoch) note(op history.Operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ops = append(e.ops, op)
}

// historyWorker is a client that runs one operation after the other.
type historyWorker struct {
	h             *historyRun
	client        *client
	session, name string
}

// send sends a request once.
func (w *historyWorker) send(t *testing.T, method, path, body, key, match string) (response, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return w.client.send(ctx, t, method, path, body, map[string]string{"Idempotency-Key": key, "If-Match": match})
}

// write sends a write until it has a clear response, or gives up. An error after an attempt without a clear response says nothing about
// that attempt.
func (w *historyWorker) write(t *testing.T, e *epoch, a historyAction) {
	op := history.Operation{
		Key: unique("h"), Session: w.session, Worker: w.name, Name: a.method + " " + a.path, Write: true, Changes: a.changes, Call: w.h.now(),
		Outcome: history.Unknown,
	}
	match := ""
	if version := e.versionOf(a.id); version > 0 && a.method == http.MethodPatch && rand.IntN(5) == 0 {
		op.IfMatch, match = history.State{Object: a.id, Version: version}, fmt.Sprintf("%q", strconv.FormatInt(version, 10))
	}
	key := op.Key
	if a.method == http.MethodDelete {
		key = "" // not in the contract
	}
	unclear := false
	var got response
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		var err error
		got, err = w.send(t, a.method, a.path, a.body, key, match)
		if err != nil || unclearResponse(got) {
			unclear = true
			if rand.IntN(10) == 0 {
				break
			}
			continue
		}
		switch {
		case got.Status < 300:
			op.Outcome = history.OK
		case got.Status >= 500 || got.Status == http.StatusTooManyRequests:
			w.h.violate("RETRY-1", "%s %s: %d %s", a.method, a.path, got.Status, got.Body)
		case !unclear:
			op.Outcome = history.Refused
		}
		break
	}
	op.Return = w.h.now()
	if op.Outcome == history.OK {
		op.Seen = w.see(t, e, a, got)
		w.replay(t, a, key, match, got)
	}
	e.note(op)
}

// unclearResponse reports whether a response does not say if a write took effect.
func unclearResponse(a response) bool {
	return a.outage() || a.code() == "idempotency_in_progress" || a.Status == http.StatusBadGateway // Stripe did not respond
}

// replay sometimes repeats a write, which must return the same bytes. A customer can be erased meanwhile.
func (w *historyWorker) replay(t *testing.T, a historyAction, key, match string, first response) {
	if key == "" || rand.IntN(10) > 0 || strings.HasPrefix(a.path, "/customers") {
		return
	}
	again, err := w.send(t, a.method, a.path, a.body, key, match)
	if err != nil || unclearResponse(again) {
		return
	}
	if again.Status != first.Status || string(again.Body) != string(first.Body) {
		w.h.violate("KEY-1", "%s %s with key %s: %d %s, then %d %s", a.method, a.path, key, first.Status, first.Body, again.Status, again.Body)
	}
}

func (e *epoch) versionOf(id string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.versions[id]
}

// see returns the state in a response, and makes the objects that it names known to the other clients.
func (w *historyWorker) see(t *testing.T, e *epoch, a historyAction, got response) []history.State {
	if a.method == http.MethodDelete {
		return []history.State{{Object: a.id}}
	}
	var shown struct {
		Booking  string   `json:"booking_id"`
		Customer string   `json:"customer_id"`
		Invoices []string `json:"invoice_ids"`
		Payments []struct{ ID, Status string }
		Lead     string `json:"converted_booking_id"`
		intent
	}
	state, err := history.StateOf(got.Body)
	if err == nil {
		err = json.Unmarshal(got.Body, &shown)
	}
	if err != nil {
		t.Errorf("%s %s: %d %s: %v", a.method, a.path, got.Status, got.Body, err)
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(state.Object, state.Version)
	for _, id := range append(shown.Invoices, shown.Booking, shown.Customer, shown.Lead) {
		e.add(id, 0)
	}
	for _, p := range shown.Payments {
		if !slices.Contains(e.payments[state.Object], p.ID) {
			e.payments[state.Object] = append(e.payments[state.Object], p.ID)
		}
	}
	if shown.ClientSecret != "" {
		e.intents[state.Object] = shown.intent
	}
	return []history.State{state}
}

// get reads an object. A read without a clear response is no operation.
func (w *historyWorker) get(t *testing.T, e *epoch, id string) response {
	path := historyPaths[id[:strings.Index(id, "_")]] + "/" + id
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		op := history.Operation{Key: fmt.Sprint("read ", w.h.reads.Add(1)), Session: w.session, Worker: w.name, Name: "GET " + path, Call: w.h.now()}
		got, err := w.send(t, http.MethodGet, path, "", "", "")
		op.Return = w.h.now()
		switch {
		case err != nil || got.outage():
			if w != w.h.settler {
				return got
			}
			continue
		case got.Status == http.StatusOK:
			op.Seen = w.see(t, e, historyAction{method: http.MethodGet, path: path, id: id}, got)
		case got.Status == http.StatusNotFound:
			op.Seen = []history.State{{Object: id}}
		default:
			w.h.violate("OBJ-1", "GET %s: %d %s", path, got.Status, got.Body)
			return got
		}
		e.note(op)
		return got
	}
	w.h.violate("OBJ-1", "GET %s: no clear response within a minute", path)
	return response{}
}

// list reads the first page of a list and notes what it shows of the epoch's objects.
func (w *historyWorker) list(t *testing.T, e *epoch, path string) {
	op := history.Operation{Key: fmt.Sprint("read ", w.h.reads.Add(1)), Session: w.session, Worker: w.name, Name: "GET " + path, Call: w.h.now()}
	got, err := w.send(t, http.MethodGet, path+"?limit=20", "", "", "")
	op.Return = w.h.now()
	if err != nil || got.Status != http.StatusOK {
		return
	}
	var page struct{ Data []json.RawMessage }
	if err := json.Unmarshal(got.Body, &page); err != nil {
		t.Errorf("GET %s: %v", path, err)
	}
	for _, one := range page.Data {
		if s, err := history.StateOf(one); err == nil && e.versionOf(s.Object) > 0 {
			op.Seen = append(op.Seen, s)
		}
	}
	e.note(op)
}
