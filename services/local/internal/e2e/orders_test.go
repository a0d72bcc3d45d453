package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/prove"
)

// TestOrders proves on the executables of the platform that neither the order of round trips nor a crash matters.
func TestOrders(t *testing.T) {
	s := newProver(t, shared)
	if text := os.Getenv("SCHEDULE"); text != "" {
		s.replay(t, text)
		return
	}
	var all []*family
	for i, f := range families {
		if strings.Contains(f.name, os.Getenv("FAMILY")) {
			all = append(all, &families[i])
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if !full() {
		all = all[:min(3, len(all))] // others have their turn in other runs
	}
	s.warm(t, all...)
	t.Run("every order of two", func(t *testing.T) { s.everyOrder(t, pairs(all), 15*time.Second, "pairs") })
	t.Run("every order of three", func(t *testing.T) { s.everyOrder(t, triples(all), 5*time.Second, "triples") })
	t.Run("every crash", func(t *testing.T) { s.everyCrash(t, operations(all)) })
	t.Run("afterwards", s.afterwards)
}

// atMost returns a context that ends after a short time. With TEST_SCALE=full, it ends after the number of minutes in MINUTES, by default 120.
func atMost(t *testing.T, short time.Duration) context.Context {
	t.Helper()
	if full() {
		short = time.Duration(setting(t, "MINUTES", 120)) * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	t.Cleanup(cancel)
	return ctx
}

// setting returns the number in an environment variable, or another one if it is empty.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, text := otherwise, os.Getenv(name)
	if _, err := fmt.Sscan(text, &n); text != "" && err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// group is actions of a family that run at the same time.
type group struct {
	*family

	actions []action
	allowed []string // what clients see when one action follows the other, in each order, and with the worker of the family before, between and after
	later   []played // runs that are compared when what clients see has settled
}

type played struct {
	result

	steps []prove.Step
}

// pairs returns all pairs of actions of families, each with itself, and each with its repetition.
func pairs(families []*family) (list []*group) {
	for _, f := range families {
		for i, a := range f.actions {
			for _, b := range f.actions[i:] {
				if a.method != work || b.method != work { // a participant's worker runs once at a time
					list = append(list, &group{family: f, actions: []action{a, b}})
				}
			}
			if again := a; a.method != work && a.method != payer {
				again.name += repeated
				list = append(list, &group{family: f, actions: []action{a, again}})
			}
		}
	}
	return list
}

// triples returns the selected sets of three actions.
func triples(families []*family) (list []*group) {
	for _, f := range families {
		for _, names := range f.triples {
			g := &group{family: f}
			for _, name := range names {
				g.actions = append(g.actions, f.action(name))
			}
			list = append(list, g)
		}
	}
	return list
}

func (f *family) action(name string) action {
	return f.actions[slices.IndexFunc(f.actions, func(d action) bool { return d.name == name })]
}

func (g *group) String() string {
	var names []string
	for _, d := range g.actions {
		names = append(names, d.name)
	}
	return strings.Join(names, "; ")
}

// permutations returns all orders of n numbers.
func permutations(n int) (list [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, p := range permutations(n - 1) {
		for i := range n {
			list = append(list, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return list
}

// allow adds what clients may see. What the platform does in the background can come earlier or later each time.
func (s *prover) allow(t *testing.T, g *group) {
	t.Helper()
	var all []result
	actions := g.actions
	if i := slices.IndexFunc(g.family.actions, isWork); i >= 0 && !slices.ContainsFunc(actions, isWork) { // the platform's worker also runs
		actions = append(slices.Clone(actions), g.family.actions[i])
	}
	for _, order := range permutations(len(actions)) {
		r := s.sequence(t, g.family, actions, order)
		r.got = r.got[:len(g.actions)]
		all = append(all, r)
	}
	g.allowed = append(g.allowed, s.settled(t, g.family, all...)...)
}

func isWork(d action) bool { return d.method == work }

// check runs a group in the order of a schedule, and compares what clients see, or notes the run for settle.
func (s *prover) check(t *testing.T, g *group, prefix prove.Schedule) ([]prove.Step, error) {
	t.Helper()
	if g.lags == 0 && g.allowed == nil {
		s.allow(t, g)
	}
	steps, r := s.play(t, g.family, prefix, g.actions...)
	if g.lags > 0 {
		g.later = append(g.later, played{r, steps})
		s.retire(t, false)
		return steps, nil
	}
	defer s.retire(t, true)
	return steps, g.compare(steps, s.seen(t, g.family, r))
}

func (g *group) compare(steps []prove.Step, seen string) error {
	if slices.Contains(g.allowed, seen) {
		return nil
	}
	text := fmt.Sprintf("SCHEDULE='%s; %s' (%s)", g, prove.ScheduleOf(steps), g.name)
	for _, allowed := range slices.Compact(slices.Sorted(slices.Values(g.allowed))) {
		text += "\none after the other: " + difference(seen, allowed)
	}
	return fmt.Errorf("%s", text)
}

// settle compares the runs that check has noted.
func (s *prover) settle(t *testing.T, g *group) error {
	t.Helper()
	if len(g.later) == 0 {
		return nil
	}
	s.allow(t, g)
	end, more := time.Now().Add(30*time.Second), 3
	for _, p := range g.later {
		for {
			err := g.compare(p.steps, s.seen(t, g.family, p.result))
			if err == nil {
				break
			}
			if time.Now().After(end) {
				if more == 0 {
					return err
				}
				more--
				s.allow(t, g)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	g.later = nil
	s.retire(t, true)
	return nil
}

// everyOrder runs groups of actions in every order with at most two preemptions. What clients see must be what they see when one
// action follows the other. A short run takes a sample of groups.
func (s *prover) everyOrder(t *testing.T, all []*group, short time.Duration, kind string) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	ctx, orders, complete, violations, begin := atMost(t, short), 0, 0, 0, time.Now()
	for i, g := range all {
		if ctx.Err() != nil {
			break
		}
		start := time.Now()
		runs, completed, err := prove.Explore(ctx, setting(t, "PREEMPTIONS", 2), g.independent(), func(prefix prove.Schedule) ([]prove.Step, error) { return s.check(t, g, prefix) })
		if err == nil {
			err = s.settle(t, g)
		}
		if err != nil {
			t.Error(err)
			violations++
		} else if completed {
			complete++
		}
		orders += runs
		if full() {
			t.Logf("%d of %d: %s: %d orders in %v", i+1, len(all), g, runs, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d orders; all of %d of %d %s; %v", orders, complete, len(all), kind, time.Since(begin).Round(time.Second))
	if orders == 0 && len(all) > 0 {
		t.Error("no order was run")
	}
	record(t, kind, begin, map[string]any{"groups": len(all), "complete": complete, "orders": orders, "violations": violations})
}

// independent leaves out orders of statements on keys and events, which are rows of one request each.
func (g *group) independent() prove.Independent {
	again := strings.HasSuffix(g.actions[len(g.actions)-1].name, repeated)
	return prove.ByTransaction(func(sql string) bool {
		return !again && strings.Contains(sql, "idempotency") || strings.Contains(sql, "insert into outbox")
	})
}

// replay runs the schedule of a failure.
func (s *prover) replay(t *testing.T, text string) {
	t.Helper()
	parts := strings.Split(text, "; ")
	schedule, err := prove.ParseSchedule(parts[len(parts)-1])
	if err != nil {
		t.Fatalf("SCHEDULE: %v", err)
	}
	for i := range families {
		one := []*family{&families[i]}
		for _, g := range append(pairs(one), triples(one)...) {
			if g.String() != strings.Join(parts[:len(parts)-1], "; ") {
				continue
			}
			s.warm(t, one...)
			if _, err := s.check(t, g, schedule); err != nil {
				t.Error(err)
			}
			if err := s.settle(t, g); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Fatalf("SCHEDULE: no actions %q", parts[:len(parts)-1])
}

// operation is one action of a family.
type operation struct {
	*family
	action
}

func operations(families []*family) (list []operation) {
	for _, f := range families {
		for _, d := range f.actions {
			if d.method != payer { // the gateway's part does not crash
				list = append(list, operation{f, d})
			}
		}
	}
	return list
}

// everyCrash breaks each write once at each place, and then repeats it with its key. The client must see what it sees without the
// break, and the same response to one more repetition. A short run takes a sample of writes.
func (s *prover) everyCrash(t *testing.T, all []operation) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	ctx, counts, complete, violations, begin := atMost(t, 10*time.Second), map[string]int{}, 0, 0, time.Now()
	for i, w := range all {
		if ctx.Err() != nil {
			break
		}
		start := time.Now()
		if err := s.crashes(ctx, t, w, counts); err != nil {
			t.Error(err)
			violations++
		} else if ctx.Err() == nil {
			complete++
		}
		if full() {
			t.Logf("%d of %d: %s: %v in %v", i+1, len(all), w.action.name, counts, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%v; all of %d of %d writes; %v", counts, complete, len(all), time.Since(begin).Round(time.Second))
	if len(counts) == 0 {
		t.Error("nothing was broken")
	}
	record(t, "crashes", begin, map[string]any{"writes": len(all), "complete": complete, "crashes": counts, "violations": violations})
}

// crash is a way to break a write at the step or call with a number. It returns whether there is one with that number.
type crash struct {
	name string
	run  func(t *testing.T, s *prover, n, participant int, write func(context.Context)) (reached bool)
}

var crashes = []crash{
	{"broken before a round trip", atRound(prove.Before, false)},
	{"broken after a round trip", atRound(prove.After, false)},
	{"killed after a round trip", atRound(prove.After, true)},
	{"broken before a call", atCall(prove.Before, false)},
	{"broken after a call", atCall(prove.After, false)},
	{"killed after a call", atCall(prove.After, true)},
}

func atRound(drop prove.Drop, kill bool) func(t *testing.T, s *prover, n, participant int, write func(context.Context)) bool {
	return func(t *testing.T, s *prover, n, participant int, write func(context.Context)) bool {
		t.Helper()
		fault := &prove.Fault{Step: n, Drop: drop}
		if kill {
			fault.Kill = func(process string) { s.processes[participant][process].kill() }
		}
		writes := make([]func(context.Context), participants)
		writes[participant] = write
		steps, err := s.run(t, nil, fault, writes...)
		if err != nil {
			t.Fatal(err)
		}
		return len(steps) > n
	}
}

func atCall(drop prove.Drop, kill bool) func(t *testing.T, s *prover, n, participant int, write func(context.Context)) bool {
	return func(t *testing.T, s *prover, n, participant int, write func(context.Context)) bool {
		t.Helper()
		fault := &prove.CallFault{Call: n, Drop: drop}
		if kill {
			fault.Then = func(process string) {
				if process == paymentGateway {
					process = "payments" // which called it
				}
				s.processes[participant][process].kill()
			}
		}
		s.calls[participant].Arm(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		write(ctx)
		return s.calls[participant].Arm(nil) > n
	}
}

// crashed is a run of a write that was broken and repeated.
type crashed struct {
	result

	place string
	again response // to one more repetition
}

// crashes breaks a write at each place, until what clients see is wrong, and adds to the counts by kind. After a break, the next connection
// prepares its statements again, so a write makes more round trips than before.
func (s *prover) crashes(ctx context.Context, t *testing.T, w operation, counts map[string]int) error {
	t.Helper()
	want := s.outcomes(t, w)
	var later []crashed // runs that are compared when what clients see has settled
	for _, c := range crashes {
		for n, reached := 0, true; reached && ctx.Err() == nil; n++ {
			var r crashed
			r, reached = s.crash(t, w, c, n)
			if reached {
				counts[c.name]++
			}
			if later = append(later, r); w.lags == 0 {
				if err := s.compare(t, w, later, want); err != nil {
					return err
				}
				later = nil
			}
			s.retire(t, w.lags == 0)
		}
	}
	defer s.retire(t, true)
	return s.compare(t, w, later, want)
}

// compare compares what clients see of runs with what they may see.
func (s *prover) compare(t *testing.T, w operation, runs []crashed, want []string) error {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for _, r := range runs {
		seen := s.seen(t, w.family, r.result)
		for w.lags > 0 && !slices.Contains(want, seen) && time.Now().Before(end) {
			time.Sleep(50 * time.Millisecond)
			seen = s.seen(t, w.family, r.result)
		}
		if !slices.Contains(want, seen) {
			return fmt.Errorf("%s: %s, %s: %s", w.family.name, w.action.name, r.place, difference(seen, want[0]))
		}
		if got := r.got[0]; w.method != http.MethodDelete && got.Status < 300 && string(r.again.Body) != string(got.Body) {
			return fmt.Errorf("%s: %s, %s: the repetition: %s", w.family.name, w.action.name, r.place, difference(string(r.again.Body), string(got.Body)))
		}
	}
	return nil
}

// outcomes returns what clients may see after a write: alone, before or after the worker of the family, which also runs in the platform, and
// after the same deletion.
func (s *prover) outcomes(t *testing.T, w operation) []string {
	t.Helper()
	all := []result{s.sequence(t, w.family, []action{w.action}, []int{0})}
	if w.method == http.MethodDelete { // which has no key: the second one finds nothing
		r := s.sequence(t, w.family, []action{w.action, w.action}, []int{0, 1})
		r.got = r.got[1:]
		all = append(all, r)
	}
	for _, d := range w.actions {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			if d.method == work && w.method != work {
				r := s.sequence(t, w.family, []action{d, w.action}, order)
				r.got = r.got[1:]
				all = append(all, r)
			}
		}
	}
	return s.settled(t, w.family, all...)
}

// crash runs an action with a crash, and repeats it twice.
func (s *prover) crash(t *testing.T, w operation, c crash, n int) (r crashed, reached bool) {
	t.Helper()
	number, key := numbers([]action{w.action})[0], unique("crash")
	r = crashed{result: result{s.newFixture(t, w.family), make([]response, 1)}, place: fmt.Sprintf("%s (%d)", c.name, n)}
	path, body := w.request(r.fixture)
	reached = c.run(t, s, n, number, func(ctx context.Context) {
		if w.method == work {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a worker that crashed does not come again
			defer cancel()
			_ = s.guard.Open(ctx, path)
			return
		}
		_, _ = s.clients[number].try(t, w.method, path, body, key)
	})
	s.restart(t)
	s.endLeases(t)
	if w.method == work {
		s.perform(t, t.Context(), number, r.fixture, w.action, "")
		return r, reached
	}
	r.got[0] = s.repeat(t, w.method, path, body, key)
	r.again = s.repeat(t, w.method, path, body, key)
	return r, reached
}

// repeat repeats a request as another participant until its outcome is known, or returns the last response after 20 seconds.
func (s *prover) repeat(t *testing.T, method, path, body, key string) (got response) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got = s.clients[1].do(t, method, path, body, key)
		if got.Status < 500 && got.code() != "idempotency_in_progress" {
			break
		}
	}
	return got
}

// restart starts the processes that were killed.
func (s *prover) restart(t *testing.T) {
	t.Helper()
	for _, all := range s.processes {
		for _, r := range all {
			if r.dead() {
				r.start(t, shared)
			}
		}
	}
}
