package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestTracesOfModels replays traces of models/accept.qnt on the executables of the platform. Two participants have a gateway and a process of
// customers each, whose calls to bookings the test delivers as the trace says, with their responses. A crash is a SIGKILL. The completer is that of
// the platform. After each trace, clients must see the state of the model, and the events must be its transitions.
func TestTracesOfModels(t *testing.T) {
	onMachine(t)
	w := newReplay(t, shared)
	limit := 12 * time.Second
	if full() {
		limit = 20 * time.Minute
	}
	took, replayed, late, steps := time.Duration(0), 0, 0, 0
	for took < limit {
		for _, trace := range traces[acceptState](t, "acceptReplay", scaled(8, 80)) {
			begin := time.Now()
			t.Log(acceptText(trace))
			n, err := w.accept(t, trace)
			took += time.Since(begin)
			switch {
			case errors.Is(err, errLate) && late < 20:
				late++
			case err != nil:
				t.Fatal(err)
			default:
				replayed++
				steps += n
			}
			if took > limit && replayed > 0 {
				break
			}
		}
	}
	w.checkEvents(t)
	t.Logf("%d traces with %d steps in %v; %d took too long", replayed, steps, took.Round(time.Second), late)
	record(t, "models", time.Now().Add(-took), map[string]any{
		"model": "accept", "samples": 0, "steps": steps, "mutants": 0, "found": 0, "traces": replayed,
	})
}

// errLate reports that a held call timed out, because the machine is busy. The trace is not replayed.
var errLate = errors.New("a held call timed out")

// traces returns random traces of a module, those with the most different actions first. A trace is its states.
func traces[S any](t *testing.T, module string, n int) (list [][]S) {
	t.Helper()
	dir := t.TempDir()
	const perRun = 5 // of all that are generated, one is replayed
	out, err := exec.CommandContext(t.Context(), "../../../../.ci/quint", "run", "../../../../models/replay.qnt", "--main="+module, "--step=replay",
		"--backend=typescript", "--mbt", "--verbosity=1", "--max-steps=16", fmt.Sprintf("--max-samples=%d", perRun*n), fmt.Sprintf("--n-traces=%d", perRun*n),
		"--out-itf="+filepath.Join(dir, "{seq}.json")).CombinedOutput()
	if err != nil {
		t.Fatalf("quint: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	type trace struct {
		states  []S
		actions map[any]bool
	}
	var all []trace
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var itf struct{ States []map[string]any }
		if err := json.Unmarshal(text, &itf); err != nil {
			t.Fatal(err)
		}
		one := trace{actions: map[any]bool{}}
		for _, state := range itf.States {
			one.actions[state["mbt::actionTaken"]] = true
			text, err := json.Marshal(plain(state))
			if err != nil {
				t.Fatal(err)
			}
			var s S
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			one.states = append(one.states, s)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b trace) int { return len(b.actions) - len(a.actions) })
	for _, one := range all[:min(n, len(all))] {
		list = append(list, one.states)
	}
	return list
}

// plain converts a value of the Informal Trace Format to plain JSON: https://apalache-mc.org/docs/adr/015adr-trace.html.
func plain(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		if n, ok := v["#bigint"].(string); ok {
			return json.Number(n)
		}
		if set, ok := v["#set"].([]any); ok {
			return plain(set)
		}
		if pairs, ok := v["#map"].([]any); ok {
			out := map[string]any{}
			for _, p := range pairs {
				pair, _ := plain(p).([]any)
				out[fmt.Sprint(pair[0])] = pair[1]
			}
			return out
		}
		if tag, ok := v["tag"].(string); ok && tag == "None" {
			return nil
		} else if ok {
			return plain(v["value"])
		}
		for key := range v {
			v[key] = plain(v[key])
		}
		return v
	default:
		return value
	}
}

// acceptState is a state of models/accept.qnt.
type acceptState struct {
	Action string `json:"mbt::actionTaken"`
	Picks  struct {
		N string
		R *struct{ Process string }
	} `json:"mbt::nondetPicks"`
	Quote struct {
		Status    string
		Version   int
		Accepting bool
	}
	Booking struct {
		Status  string
		Version int
	}
	Invoices  int
	Processes map[string]struct{ Step, Code string }
	Events    []string
}

func acceptText(trace []acceptState) string {
	var list []string
	for _, s := range trace {
		process := s.Picks.N
		if s.Action == "deliver" {
			process = s.Picks.R.Process
		}
		list = append(list, strings.TrimSpace(s.Action+" "+process))
	}
	return strings.Join(list, "; ")
}

// replay runs traces of models.
type replay struct {
	plain               *client
	actors              map[string]*actor
	customers, bookings *pgx.Conn
	customer            string
	transitions         map[string]map[string][]string // of each object, by topic
}

func newReplay(t *testing.T, p *platform) *replay {
	t.Helper()
	w := &replay{
		plain: p.as(t, "DEMO_TEST_KEY"), actors: map[string]*actor{}, customers: p.database(t, "customers"), bookings: p.database(t, "bookings"),
		transitions: map[string]map[string][]string{"customers": {}, "bookings": {}},
	}
	env, err := readEnv(p.path("services", "customers.env"))
	if err != nil {
		t.Fatal(err)
	}
	idle(t, p, "customers", env)
	for _, name := range []string{"first", "second"} {
		w.actors[name] = newActor(t, p, w.plain, env)
	}
	w.customer = w.plain.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`).id(t)
	return w
}

// actor is a participant.
type actor struct {
	*client

	customers *replica
	calls     chan *heldCall
	got       chan response
	lost      sync.Map  // bodies of calls that must not arrive again
	held      *heldCall // the last call; nil: it has ended
	sent      bool
}

// heldCall is a call to another service that waits for the test.
type heldCall struct {
	lose     func()    // breaks each repetition of the call
	deliver  chan bool // false: drop it
	executed chan int  // the status of the response
	respond  chan bool // false: break the connection
	gone     <-chan struct{}
}

// newActor starts the processes of a participant.
func newActor(t *testing.T, p *platform, plain *client, env map[string]string) *actor {
	t.Helper()
	a := &actor{calls: make(chan *heldCall, 8)}
	target, err := url.Parse(env["UPSTREAM_BOOKINGS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	hold := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/internal/v1/bookings" {
			pass.ServeHTTP(rw, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if _, lost := a.lost.Load(string(body)); lost { // Go's client sends it again
			panic(http.ErrAbortHandler)
		}
		c := &heldCall{lose: func() { a.lost.Store(string(body), true) }, deliver: make(chan bool, 1), executed: make(chan int, 1), respond: make(chan bool, 1), gone: r.Context().Done()}
		a.calls <- c
		if !<-c.deliver {
			panic(http.ErrAbortHandler)
		}
		again := r.Clone(context.WithoutCancel(r.Context())) // its process may have been killed
		again.Body = io.NopCloser(strings.NewReader(string(body)))
		recorded := httptest.NewRecorder()
		pass.ServeHTTP(recorded, again)
		c.executed <- recorded.Code
		if !<-c.respond {
			panic(http.ErrAbortHandler)
		}
		for name, values := range recorded.Header() {
			rw.Header()[name] = values
		}
		rw.WriteHeader(recorded.Code)
		_, _ = rw.Write(recorded.Body.Bytes())
	}))
	t.Cleanup(hold.CloseClientConnections)
	idleTopics := []string{"KAFKA_TOPIC_PREFIX=" + idlePrefix, "KAFKA_PARTITIONS=1"}
	a.customers = newReplica(t, "customers", filepath.Join(p.root, "bin", "customers"), append(slices.Clone(idleTopics),
		"WORKER_DATABASE_URL="+inDatabase(t, env["WORKER_DATABASE_URL"], "idle_customers"), "UPSTREAM_BOOKINGS_URL="+hold.URL)...)
	gateway := newReplica(t, "gateway", filepath.Join(p.root, "bin", "gateway"), append(idleTopics, "UPSTREAM_CUSTOMERS_URL=http://"+a.customers.address)...)
	for _, r := range []*replica{a.customers, gateway} {
		r.start(t, p)
		t.Cleanup(r.stop)
	}
	base, err := url.Parse(p.env["BASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(gateway.address)
	if err != nil {
		t.Fatal(err)
	}
	base.Host = net.JoinHostPort("127.0.0.1", port)
	a.client = &client{base: base.String(), key: plain.key, checker: plain.checker}
	return a
}

// begin sends a request, and waits until its call is held or its response arrives, whose status it returns; 0: its call is held.
func (a *actor) begin(t *testing.T, path string) int {
	t.Helper()
	for {
		got := make(chan response, 1)
		a.got, a.held, a.sent = got, nil, false
		go func() {
			res, _ := a.try(t, http.MethodPost, path, "", "") // with a key, the gateway could repeat it
			got <- res
		}()
		select {
		case a.held = <-a.calls:
			return 0
		case res := <-a.got:
			if !res.outage() { // its gateway still avoids the process that was killed
				return res.Status
			}
		case <-time.After(20 * time.Second):
			t.Fatal("neither a call nor a response")
		}
	}
}

// respond lets the response of the held call arrive, and returns the status of the response to the client.
func (a *actor) respond(t *testing.T) (int, error) {
	t.Helper()
	select {
	case <-a.held.gone:
		return 0, errLate
	default:
	}
	a.held.respond <- true
	a.held = nil
	select {
	case res := <-a.got:
		return res.Status, nil
	case <-time.After(20 * time.Second):
		t.Fatal("no response")
		return 0, nil
	}
}

// drop ends the held call. A call that was sent can still be delivered, but its response does not arrive.
func (a *actor) drop() {
	if a.held == nil {
		return
	}
	a.held.lose()
	a.held.respond <- false
	if !a.sent {
		a.held.deliver <- false
	}
	a.held = nil
}

// crash kills the process of customers and starts another one.
func (a *actor) crash(t *testing.T) {
	t.Helper()
	a.drop()
	a.customers.kill()
	a.customers.start(t, shared)
	<-a.got
}

// statuses are the responses of the model.
var statuses = map[string][]int{"": {0}, "ok": {http.StatusOK}, "conflict": {http.StatusConflict, http.StatusUnprocessableEntity}}

// accept replays a trace on a new quote. It returns the number of steps.
func (w *replay) accept(t *testing.T, trace []acceptState) (int, error) {
	t.Helper()
	for trace[len(trace)-1].Processes["completer"].Step != "idle" { // it has not finished
		trace = trace[:len(trace)-1]
	}
	last := trace[len(trace)-1]
	day := time.Date(2040+rand.IntN(50), 1, 1+rand.IntN(365), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	unit := w.plain.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Replayed"}`).id(t)
	defer func() { execute(t, w.bookings, "update units set status = 'retired' where id = $1", uuidOf(t, unit)) }()
	quote := newQuote(t, w.plain, w.customer, "", unit, day)
	onWire := map[string][]*heldCall{} // calls of processes, in the order in which they were sent
	rival := ""
	defer func() {
		for _, a := range w.actors {
			a.drop()
		}
		for _, list := range onWire {
			for _, c := range list {
				c.lose()
				c.deliver <- false
			}
		}
	}()
	for i, s := range trace[1:] {
		n, before := s.Picks.N, trace[i]
		if before.Processes["completer"].Step != "idle" || s.Action == "takeOver" {
			n = "completer"
		}
		a, want := w.actors[n], statuses[s.Processes[n].Code]
		var got int
		var err error
		switch s.Action {
		case "begin":
			got = a.begin(t, "/quotes/"+quote+"/accept")
		case "send":
			if a != nil {
				a.sent, onWire[n] = true, append(onWire[n], a.held)
			}
		case "deliver":
			n = s.Picks.R.Process
			c := onWire[n][0]
			onWire[n] = onWire[n][1:]
			c.deliver <- true
			if status := <-c.executed; status >= http.StatusInternalServerError {
				return 0, errLate // the request was no longer valid
			}
		case "finish", "release":
			if a != nil {
				if got, err = a.respond(t); err != nil {
					return 0, err
				}
				break
			}
			execute(t, w.customers, "update quotes set accept_next = now() where id = $1 and accept_until is not null", uuidOf(t, quote))
			await(t, "the completer ends", func() bool {
				return len(rows(t, w.customers, "select 'x' from quotes where id = $1 and accept_until is not null", uuidOf(t, quote))) == 0
			})
		case "crash":
			a.crash(t)
		case "leaseEnds":
			execute(t, w.customers, "update quotes set accept_until = now() where id = $1", uuidOf(t, quote))
			for name, list := range onWire { // they are no longer valid
				for _, c := range list {
					c.lose()
					c.deliver <- false
				}
				onWire[name] = nil
			}
		case "decline":
			w.plain.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/decline", "")
		case "withdraw":
			w.plain.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/cancel", "")
		case "takeSlot":
			body := fmt.Sprintf(`{"unit_id":%q,"event_date":%q,"event_start_time":"11:00","event_end_time":"13:00"}`, unit, day)
			rival = w.plain.want(t, http.StatusCreated, http.MethodPost, "/bookings", body).id(t)
		case "leaveSlot":
			w.plain.want(t, http.StatusOK, http.MethodPost, "/bookings/"+rival+"/cancel", "")
		case "cancelBooking":
			w.plain.want(t, http.StatusOK, http.MethodPost, "/bookings/"+w.booking(t, quote)+"/cancel", "")
		case "learn", "replay": // the only action that step replay names itself
			id := w.booking(t, quote)
			await(t, "customers knows of the cancellation", func() bool {
				return len(rows(t, w.customers, "select 'x' from bookings where id = $1::text::uuid and status = 'cancelled'", stored(id))) == 1
			})
		case "takeOver", "book": // the completer makes all its steps together
		default:
			return 0, fmt.Errorf("no step for action %q", s.Action)
		}
		if !slices.Contains(want, got) && slices.Contains([]string{"begin", "finish", "release"}, s.Action) && a != nil {
			return 0, fmt.Errorf("step %d, %s %s: responded %d, want one of %d", i+1, s.Action, n, got, want)
		}
	}
	return len(trace) - 1, w.compare(t, quote, last)
}

// booking returns the id of the booking of a quote, or "".
func (w *replay) booking(t *testing.T, quote string) string {
	t.Helper()
	for _, b := range w.plain.list(t, "/bookings?customer_id="+w.customer+"&limit=100") {
		if b["quote_id"] == quote {
			id, _ := b["id"].(string)
			return id
		}
	}
	return ""
}

// compare compares what clients see of a quote with a state of the model, and notes its transitions in the model.
func (w *replay) compare(t *testing.T, quote string, want acceptState) error {
	t.Helper()
	q := read[struct {
		Status     string
		Version    int
		InvoiceIDs []string `json:"invoice_ids"`
		BookingID  string   `json:"booking_id"`
	}](t, w.plain, "/quotes/"+quote)
	if q.Status != want.Quote.Status || q.Version != want.Quote.Version || len(q.InvoiceIDs) != want.Invoices {
		return fmt.Errorf("the quote is %+v, want %+v with %d invoices", q, want.Quote, want.Invoices)
	}
	booking, status, version := w.booking(t, quote), "none", 0
	if booking != "" {
		b := read[struct {
			Status  string
			Version int
		}](t, w.plain, "/bookings/"+booking)
		status, version = b.Status, b.Version
	}
	if status != want.Booking.Status || version != want.Booking.Version {
		return fmt.Errorf("the booking is %s in version %d, want %+v", status, version, want.Booking)
	}
	path := append([]string{"quote.created draft", "quote.updated sent"}, want.Events...)
	for i, status := range want.Events {
		kind := "quote.updated "
		if status == "accepted" {
			kind = "quote.accepted "
		}
		path[i+2] = kind + status
	}
	w.transitions["customers"][quote] = path
	if booking != "" {
		w.transitions["bookings"][booking] = []string{"booking.created pending", "booking.cancelled cancelled"}[:version]
	}
	return nil
}

// checkEvents compares the events of all objects, in the order of their versions, with the transitions of the model.
func (w *replay) checkEvents(t *testing.T) {
	t.Helper()
	wrong := map[string]string{}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		clear(wrong)
		for _, topic := range []string{"customers", "bookings"} {
			events := shared.events(t, topic)
			for object, want := range w.transitions[topic] {
				got := make([]string, len(events[object]))
				for _, e := range events[object] {
					var state struct{ Status string }
					if err := json.Unmarshal(e.GetObject(), &state); err != nil {
						t.Fatal(err)
					}
					if v := int(e.GetResourceVersion()); v >= 1 && v <= len(got) {
						got[v-1] += e.GetType() + " " + state.Status
					}
				}
				if !slices.Equal(got, want) {
					wrong[object] = fmt.Sprintf("the events are %q, want %q", got, want)
				}
			}
		}
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
}
