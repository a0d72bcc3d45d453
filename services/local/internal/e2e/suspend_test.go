package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// account is a tenant of its own, which a test suspends.
type account struct {
	p       *platform
	id      string
	*client // with a key in test mode, in which endpoints can be http
}

func (p *platform) newAccount(t *testing.T) account {
	t.Helper()
	var tenant struct{ ID string }
	p.identity(t, &tenant, "tenant", "create", "--slug", unique("tenant"), "--name", "Suspended", "--timezone", "UTC", "--currency", "USD", "--json")
	var key struct{ Secret string }
	p.identity(t, &key, "key", "create", "--tenant", tenant.ID, "--mode", "test", "--scopes", "all", "--json")
	return account{p, tenant.ID, p.with(t, key.Secret)}
}

func (a account) suspend(t *testing.T) {
	t.Helper()
	a.p.identity(t, nil, "tenant", "suspend", a.id, "--reason", "Invoice 42 is unpaid", "--json")
}

func (a account) resume(t *testing.T) {
	t.Helper()
	a.p.identity(t, nil, "tenant", "resume", a.id, "--reason", "Invoice 42 is paid", "--json")
}

// uuid returns the tenant's id as databases store it.
func (a account) uuid(t *testing.T) [16]byte {
	t.Helper()
	id, err := ids.Parse[ids.TenantPrefix](a.id)
	if err != nil {
		t.Fatal(err)
	}
	return id.UUID()
}

// awaitSuspended waits until webhooks, to whose database conn is connected, has recorded the suspension in both modes.
func (a account) awaitSuspended(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	await(t, "webhooks has recorded the suspension", func() bool {
		return len(rows(t, conn, `select status from tenant_states where tenant_id = $1 and status = 'suspended'`, a.uuid(t))) == 2
	})
}

// TestASuspendedTenant checks on three gateways that the next request after a suspension is rejected and the next one after the
// resumption is accepted, that an event stream and a calendar end, and that another tenant notices nothing.
func TestASuspendedTenant(t *testing.T) {
	onMachine(t)
	p := shared
	a := p.newAccount(t)
	neighbor := p.as(t, "OTHER_TEST_KEY")
	gates := []*client{a.client}
	for range 2 {
		r := newReplica(t, "gateway", filepath.Join(p.root, "bin", "gateway"))
		r.start(t, p)
		t.Cleanup(r.stop)
		other := p.with(t, a.key)
		other.base = "http://" + r.address + "/api/v1"
		gates = append(gates, other)
	}
	var feed struct{ URL string }
	a.want(t, http.StatusCreated, http.MethodPost, "/calendar-feeds", `{"name":"all"}`).decode(t, &feed)
	calendar := func() int {
		res, err := httpClient.Get(feed.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	bookings := p.database(t, "bookings")
	expectCalendar := func(suspended, want int) { // one request, because a feed has a rate limit
		await(t, "bookings has recorded the state", func() bool {
			return len(rows(t, bookings, `select status from tenant_states where tenant_id = $1 and status = 'suspended'`, a.uuid(t))) == suspended
		})
		if got := calendar(); got != want {
			t.Fatalf("the calendar: %d, want %d", got, want)
		}
	}
	expectCalendar(0, http.StatusOK)
	key := unique("replay")
	a.insist(t, http.MethodPost, "/customers", newCustomer().body, key, http.StatusCreated)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.base+"/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("stream: %v, %v", res, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}()
	for range rounds(3) {
		for _, g := range gates {
			g.want(t, http.StatusOK, http.MethodGet, "/me", "")
		}
		a.suspend(t)
		for _, g := range gates {
			if got := g.want(t, http.StatusForbidden, http.MethodGet, "/customers", ""); got.code() != "tenant_suspended" || got.Header.Get("RateLimit-Remaining") == "" {
				t.Errorf("%s %v", got.Body, got.Header)
			}
			if got := g.do(t, http.MethodPost, "/customers", newCustomer().body, key); got.Status != http.StatusForbidden || got.code() != "tenant_suspended" {
				t.Errorf("a replay: %d %s", got.Status, got.Body)
			}
			g.want(t, http.StatusForbidden, http.MethodGet, "/me", "")
		}
		expectCalendar(2, http.StatusForbidden)
		select { // before the resumption, because a stream reads the state once a second
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the stream did not end")
		}
		neighbor.want(t, http.StatusOK, http.MethodGet, "/me", "")
		a.resume(t)
		for _, g := range gates {
			g.want(t, http.StatusOK, http.MethodGet, "/me", "")
		}
		expectCalendar(0, http.StatusOK)
	}
}

// TestWebhooksOfASuspendedTenantWait checks that holds of a suspended tenant expire, that the deliveries of these events wait, even
// if webhooks crashes, and that each is made once after the resumption, as the first attempt.
func TestWebhooksOfASuspendedTenantWait(t *testing.T) {
	onMachine(t)
	a := shared.newAccount(t)
	r := a.receive(t, `["booking.updated"]`, nil)
	const holds = 20
	want := map[string]int{}
	for i := range holds {
		body := fmt.Sprintf(`{"event_date":"2034-01-%02d","hold_minutes":60}`, i+1)
		want[a.insist(t, http.MethodPost, "/bookings", body, unique("hold"), http.StatusCreated).id(t)] = 1
	}
	a.suspend(t)
	log := shared.database(t, "webhooks")
	a.awaitSuspended(t, log)
	execute(t, shared.database(t, "bookings"), `update bookings set hold_expires_at = now() where tenant_id = $1`, a.uuid(t))
	pending := func() int {
		return len(rows(t, log, `select id::text from deliveries where tenant_id = $1 and status = 'pending' and attempts = '[]'`, a.uuid(t)))
	}
	await(t, "the holds have expired and their deliveries wait", func() bool { return pending() == holds })
	shared.kill(t, "webhooks")
	await(t, "webhooks runs again", func() bool { return shared.pid("webhooks") != 0 })
	time.Sleep(2 * time.Second) // as a dispatcher would take to send them
	if n := len(r.all(t)); n != 0 || pending() != holds {
		t.Fatalf("%d deliveries while suspended, %d are pending", n, pending())
	}
	a.resume(t)
	patient(t, "the deliveries arrive", func() bool { return len(r.all(t)) >= holds })
	await(t, "the log knows", func() bool { return pending() == 0 })
	if got := objects(r.all(t), "booking.updated"); !maps.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	for _, h := range r.all(t) {
		if h.attempt != "1" {
			t.Errorf("attempt %s of %s", h.attempt, h.event)
		}
	}
}

// TestSuspensionSurvivesACrash checks that a suspension that is committed, but of which neither Redis nor a service knows, takes
// effect after identity was killed.
func TestSuspensionSurvivesACrash(t *testing.T) {
	onMachine(t)
	p := shared
	a := p.newAccount(t)
	a.want(t, http.StatusOK, http.MethodGet, "/me", "")
	p.kill(t, "identity")
	cmd := p.command("identity", "tenant", "suspend", a.id, "--reason", "a crash")
	cmd.Env = append(cmd.Env, "REDIS_URL=redis://127.0.0.1:1/0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Redis is unavailable") {
		t.Fatalf("%v: %s", err, out)
	}
	p.kill(t, "identity")
	await(t, "the suspension takes effect", func() bool {
		got, err := a.try(t, http.MethodGet, "/me", "", "")
		return err == nil && got.Status == http.StatusForbidden && got.code() == "tenant_suspended"
	})
	a.awaitSuspended(t, p.database(t, "webhooks"))
	a.resume(t)
	a.want(t, http.StatusOK, http.MethodGet, "/me", "")
}
