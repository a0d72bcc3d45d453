package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/proto"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// write is one request with a key, and a way to find the resource that it created.
type write struct {
	path, body, key, topic, created string
}

func newCustomer() write {
	tag := unique("kill")
	return write{
		path: "/customers", key: tag, topic: "customers", created: "customer.created",
		body: fmt.Sprintf(`{"first_name":"K","email":"k@example.com","metadata":{"tag":%q}}`, tag),
	}
}

func newBooking() write {
	tag := unique("kill")
	return write{
		path: "/bookings", key: tag, topic: "bookings", created: "booking.created",
		body: fmt.Sprintf(`{"event_date":"2034-01-02","metadata":{"tag":%q}}`, tag),
	}
}

// complete repeats the write until it succeeds, and fails unless there is exactly one resource and one response, regardless of the
// first attempt. The ledger checks its event later.
func (w write) complete(t *testing.T, c *client, first response) (id string) {
	t.Helper()
	second := c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated)
	if first.Status == http.StatusCreated && string(first.Body) != string(second.Body) {
		t.Errorf("the replay differs: %s, then %s", first.Body, second.Body)
	}
	third := c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated)
	if string(third.Body) != string(second.Body) || third.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a later replay differs: %s, then %s %v", second.Body, third.Body, third.Header)
	}
	return second.id(t)
}

// ledger holds the completed writes by the id in their responses.
type ledger struct {
	mu   sync.Mutex
	byID map[string]write
}

func (l *ledger) note(id string, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]write{}
	}
	l.byID[id] = w
}

// check fails unless each completed write exists once, and has exactly one event.
func (l *ledger) check(t *testing.T, p *platform, c *client) {
	t.Helper()
	if len(l.byID) == 0 {
		t.Fatal("nothing was written")
	}
	events := map[string]map[string][]*eventsv1.Event{}
	for id, w := range l.byID {
		events[w.topic] = nil
		if found := c.list(t, w.path+"?metadata[tag]="+w.key); len(found) != 1 || found[0]["id"] != id {
			t.Errorf("the response to %s was %s, and the list shows %v", w.key, id, found)
		}
	}
	await(t, fmt.Sprintf("an event for each of %d writes", len(l.byID)), func() bool {
		for topic := range events {
			events[topic] = p.events(t, topic)
		}
		for id, w := range l.byID {
			if ofType(events[w.topic][id], w.created) == 0 {
				return false
			}
		}
		return true
	})
	for id, w := range l.byID {
		if n := ofType(events[w.topic][id], w.created); n != 1 {
			t.Errorf("%s has %d different %s events", id, n, w.created)
		}
	}
}

// TestKilledBetweenCommitAndResponse crashes the process at the worst moment: after the commit of the transaction and before the
// response to the client. To achieve this, PostgreSQL waits after the commit for a replica that does not exist.
func TestKilledBetweenCommitAndResponse(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	admin := shared.database(t, "bookings")
	var writes ledger
	defer func() { commitsWait(t, admin, false) }()
	for name, tc := range map[string]struct {
		victim string
		write  func() write
	}{
		"bookings crashes": {"bookings", newBooking}, "customers crashes": {"customers", newCustomer},
		"the gateway crashes, bookings runs": {"gateway", newBooking}, "the gateway crashes, customers runs": {"gateway", newCustomer},
	} {
		t.Run(name, func(t *testing.T) {
			for range rounds(1) {
				w := tc.write()
				c.list(t, w.path+"?limit=1") // waits until the killed process is back
				commitsWait(t, admin, true)
				responses := make(chan response, 1)
				send := func() {
					httpClient.CloseIdleConnections() // Go itself repeats a request with a key if a connection ends that it used before
					a, _ := c.try(t, http.MethodPost, w.path, w.body, w.key)
					responses <- a
				}
				go send()
				await(t, "the commit", func() bool {
					select {
					case a := <-responses: // refused, for example by a process that another test killed and that is not ready yet
						t.Logf("sent again after %d %s", a.Status, a.Body)
						go send()
					default:
					}
					return len(rows(t, admin, `select query from pg_stat_activity where wait_event = 'SyncRep' and datname = $1 and usename like '%_app'`,
						"holdfast_"+w.topic)) > 0
				})
				shared.kill(t, tc.victim)
				first := <-responses
				if first.Status == http.StatusCreated {
					t.Error("the response came before the commit was confirmed: nothing was attacked")
				}
				commitsWait(t, admin, false)
				writes.note(w.complete(t, c, response{}), w)
			}
		})
	}
	writes.check(t, shared, c)
}

// commitsWait sets whether every commit waits for a missing replica.
func commitsWait(t *testing.T, admin *pgx.Conn, on bool) {
	t.Helper()
	absent := "''"
	if on {
		absent = "'absent'"
	}
	execute(t, admin, `set synchronous_commit = local`) // the test's own commits do not wait
	execute(t, admin, `alter system set synchronous_standby_names = `+absent)
	execute(t, admin, `select pg_reload_conf()`)
	want := absent[1 : len(absent)-1]
	await(t, "the setting has arrived", func() bool { return rows(t, admin, `show synchronous_standby_names`)[0] == want })
	if on {
		awaitWaitingCommit(t, admin)
	}
}

// awaitWaitingCommit returns when a commit waits for the missing replica. Commits wait only when the checkpoint process has read the
// setting too, which is later than all sessions if it is busy.
func awaitWaitingCommit(t *testing.T, admin *pgx.Conn) {
	t.Helper()
	probe, err := pgx.ConnectConfig(t.Context(), admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = probe.Close(context.WithoutCancel(t.Context())) }()
	done := make(chan error, 1)
	commit := func() {
		_, err := probe.Exec(t.Context(), `select pg_logical_emit_message(true, 'probe', '')`)
		done <- err
	}
	go commit()
	pid := int64(probe.PgConn().PID())
	await(t, "a commit that waits", func() bool {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			go commit()
		default:
		}
		return rows(t, admin, `select count(*)::text from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`, pid)[0] == "1"
	})
	execute(t, admin, `select pg_cancel_backend($1)`, pid) // ends the wait: the commit is complete on this server
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestKilledAtRandomMoments kills processes that serve the request at random moments. It checks that afterwards each operation
// exists exactly once.
func TestKilledAtRandomMoments(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	var writes ledger
	for range rounds(2) {
		for _, tc := range []struct {
			victim string
			write  func() write
		}{{"customers", newCustomer}, {"gateway", newCustomer}, {"bookings", newBooking}, {"gateway", newBooking}, {"identity", newBooking}} {
			w := tc.write()
			c.list(t, w.path+"?limit=1") // waits until the killed process is back
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(time.Duration(rand.IntN(12_000)) * time.Microsecond)
				shared.kill(t, tc.victim)
			})
			first, _ := c.try(t, http.MethodPost, w.path, w.body, w.key)
			wg.Wait()
			writes.note(w.complete(t, c, first), w)
		}
	}
	writes.check(t, shared, c)
}

// TestPostgresKilledUnderLoad checks that if PostgreSQL crashes under load and restarts, clients get 503 with a Retry-After and
// never a 500, and each confirmed resource exists once.
func TestPostgresKilledUnderLoad(t *testing.T) {
	c := shared.as(t, "OTHER_TEST_KEY")
	var writes ledger
	writers := goOn(t, 5, func() {
		w := newCustomer()
		writes.note(c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated).id(t), w)
	})
	for range rounds(2) {
		time.Sleep(time.Duration(200+rand.IntN(300)) * time.Millisecond)
		shared.kill(t, "postgres")
		await(t, "writes go on", func() bool {
			a, err := c.try(t, http.MethodGet, "/customers?limit=1", "", "")
			return err == nil && a.Status == 200
		})
	}
	writers.stop()
	writes.check(t, shared, c)
}

// load is work that repeats until it is stopped.
type load struct {
	quit chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

func goOn(t *testing.T, workers int, work func()) *load {
	t.Helper()
	l := &load{quit: make(chan struct{})}
	t.Cleanup(l.stop) // also if the test ends early
	for range workers {
		l.wg.Go(func() {
			for {
				select {
				case <-l.quit:
					return
				default:
					work()
				}
			}
		})
	}
	return l
}

func (l *load) stop() {
	l.once.Do(func() { close(l.quit) })
	l.wg.Wait()
}

// TestEveryProcessKilledUnderLoad kills every process of the platform once, in random order, while clients compete for slots. It
// checks that no slot is booked twice, and that each confirmed booking exists and has its event.
func TestEveryProcessKilledUnderLoad(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	unit := c.list(t, "/units?active=true&limit=1")[0]["id"].(string)
	year := 2040 + rand.IntN(100)
	var mu sync.Mutex
	won := map[int]string{} // slot → booking
	var writes ledger
	next := 0
	clients := goOn(t, 2, func() {
		mu.Lock()
		slot := next
		next++
		mu.Unlock()
		var race sync.WaitGroup
		for range 3 {
			race.Go(func() {
				w := newBooking()
				day := time.Date(year, 1, 1+slot/20, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
				at := fmt.Sprintf("%02d:%02d", slot%20, 0)
				w.body = fmt.Sprintf(`{"unit_id":%q,"event_date":%q,"event_start_time":%q,"event_end_time":%q,"metadata":{"tag":%q}}`,
					unit, day, at, at[:3]+"30", w.key)
				a := c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated, http.StatusConflict)
				if a.Status == http.StatusConflict {
					return
				}
				id := a.id(t)
				writes.note(id, w)
				mu.Lock()
				defer mu.Unlock()
				if other := won[slot]; other != "" {
					t.Errorf("slot %d was given to %s and to %s", slot, other, id)
				}
				won[slot] = id
			})
		}
		race.Wait()
		if won[slot] == "" {
			t.Errorf("slot %d is not booked", slot)
		}
	})
	victims := append([]string{"redis", "postgres", shared.broker()}, proto.ServiceNames()...)
	for range rounds(1) {
		rand.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		for _, victim := range victims {
			time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
			shared.kill(t, victim)
		}
	}
	clients.stop()
	t.Logf("%d slots, killed in the order %v", next, victims)
	writes.check(t, shared, c)
}
