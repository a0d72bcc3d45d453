package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPricedBookingEndToEnd(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	var customer, booking map[string]any
	c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`).decode(t, &customer)
	body := pricedBooking(t, c, customer["id"].(string))
	c.want(t, http.StatusCreated, http.MethodPost, "/bookings", body).decode(t, &booking)
	if amount(booking["total_amount"]) <= 0 || amount(booking["deposit_amount"]) <= 0 {
		t.Errorf("booking is not priced: total %v, deposit %v", booking["total_amount"], booking["deposit_amount"])
	}
	if again := c.do(t, http.MethodPost, "/bookings", body, ""); again.Status != http.StatusConflict || again.code() != "slot_unavailable" {
		t.Errorf("the second booking of the same time: %d %s", again.Status, again.Body)
	}
	id := booking["id"].(string)
	c.want(t, http.StatusOK, http.MethodPost, "/bookings/"+id+"/cancel", "")
	c.want(t, http.StatusCreated, http.MethodPost, "/bookings", body)
}

// pricedBooking returns the body of a booking of a package with a deposit.
func pricedBooking(t *testing.T, c *client, customer string) string {
	t.Helper()
	pkg := packageWithDeposit(t, c)
	unit := c.list(t, "/units?active=true&service_id="+pkg["service_id"].(string))[0]
	if ids, _ := pkg["unit_ids"].([]any); len(ids) > 0 {
		c.want(t, http.StatusOK, http.MethodGet, "/units/"+ids[0].(string), "").decode(t, &unit)
	}
	return fmt.Sprintf(`{"customer_id":%q,"package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"12:00"}`,
		customer, pkg["id"], unit["id"], anyDay())
}

// anyDay returns a random day of the 2030s, so that the tests can run again on the same database.
func anyDay() string {
	return time.Date(2030, 1, 1+rand.IntN(3650), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

func amount(money any) float64 {
	m, _ := money.(map[string]any)
	n, _ := m["amount"].(float64)
	return n
}

func packageWithDeposit(t *testing.T, c *client) map[string]any {
	t.Helper()
	for _, p := range c.list(t, "/packages?active=true") {
		if p["deposit_type"] != "none" {
			return p
		}
	}
	t.Fatal("the seed has no package with a deposit")
	return nil
}

func TestAFlushedRedisForgetsNoKey(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	tag := unique("flush")
	body := fmt.Sprintf(`{"first_name":"F","email":"f@example.com","metadata":{"tag":%q}}`, tag)
	first := c.do(t, http.MethodPost, "/customers", body, tag)
	if err := shared.redis(t).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	second := c.do(t, http.MethodPost, "/customers", body, tag)
	if first.Status != http.StatusCreated || second.Status != http.StatusCreated || string(first.Body) != string(second.Body) {
		t.Errorf("%d %s, then %d %s", first.Status, first.Body, second.Status, second.Body)
	}
	if second.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the replay is not marked")
	}
	if other := c.do(t, http.MethodPost, "/customers", `{"first_name":"G","email":"g@example.com"}`, tag); other.code() != "idempotency_mismatch" {
		t.Errorf("another body with the key: %d %s", other.Status, other.Body)
	}
}

func TestRequestsContinueWhileRedisIsDown(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	c.want(t, http.StatusOK, http.MethodGet, "/me", "")
	shared.kill(t, "redis")
	for range 20 { // the supervisor restarts Redis in the meantime
		if a := c.do(t, http.MethodGet, "/customers?limit=1", "", ""); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	await(t, "each gateway has Redis again", func() bool {
		for _, metrics := range shared.metrics(t, "gateway") {
			if !strings.Contains(metrics, "\ngateway_redis_away 0\n") {
				return false
			}
		}
		return true
	})
}

// TestFiftyClientsOneSlot checks that if fifty clients request one slot, one gets it, the others are refused, and there are no
// other effects.
func TestFiftyClientsOneSlot(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	unit := c.list(t, "/units?active=true&limit=1")[0]
	body := fmt.Sprintf(`{"unit_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"12:00"}`, unit["id"], anyDay())
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a, err := c.try(t, http.MethodPost, "/bookings", body, "")
			switch {
			case err == nil && a.Status == http.StatusCreated:
				won.Add(1)
			case err == nil && a.Status == http.StatusConflict && a.code() == "slot_unavailable":
				lost.Add(1)
			default:
				t.Errorf("%d %s %v", a.Status, a.Body, err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%d got the slot, %d were refused", won.Load(), lost.Load())
	}
}

// TestARevokedKeyIsRefusedAtOnce checks that a key is refused on the first request after its revocation, even if the gateway has
// cached it.
func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	for range rounds(3) {
		var created struct{ ID, Secret string }
		shared.identity(t, &created, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all", "--json")
		c := shared.with(t, created.Secret)
		for range 5 {
			c.want(t, http.StatusOK, http.MethodGet, "/customers?limit=1", "")
		}
		shared.identity(t, nil, "key", "revoke", created.ID)
		if a := c.do(t, http.MethodGet, "/customers?limit=1", "", ""); a.Status != http.StatusUnauthorized || a.code() != "revoked_credential" {
			t.Errorf("the request after the revocation: %d %s", a.Status, a.Body)
		}
	}
}

// TestNewTenantTakesABooking checks that a new tenant can book a slot from its availability. The hold expires by the tenant's test
// clock, with its event, and the slot is free again.
func TestNewTenantTakesABooking(t *testing.T) {
	slug := strings.ReplaceAll(unique("harbour"), "-", "")
	var created struct{ ID, Secret string }
	shared.identity(t, &created, "tenant", "create", "--slug", slug, "--name", "Harbour", "--timezone", "Australia/Lord_Howe", "--currency", "KWD", "--json")
	shared.identity(t, &created, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	c := shared.with(t, created.Secret)
	create := func(path, format string, args ...any) string {
		return c.want(t, http.StatusCreated, http.MethodPost, path, fmt.Sprintf(format, args...)).id(t)
	}
	service := create("/services", `{"name":"Sail","duration_minutes":60}`)
	unit := create("/units", `{"name":"Sloop","service_ids":[%q],"opening_hours":{"sun":[["01:30","03:00"]]}}`, service)
	pack := create("/packages", `{"name":"Hour","service_id":%q,"base_price":{"amount":12345,"currency":"KWD"},"deposit_type":"percentage","deposit_value":3333}`, service)
	var days struct {
		Data []struct {
			Price struct{ Amount int64 } `json:"price_from"`
			Units []struct {
				Slots []struct {
					From   string `json:"starts_at"`
					To     string `json:"ends_at"`
					Status string
				}
			}
		}
	}
	slots := func() string {
		c.want(t, http.StatusOK, http.MethodGet, "/availability?from=2028-10-01&to=2028-10-01", "").decode(t, &days)
		if len(days.Data) != 1 || len(days.Data[0].Units) != 1 || len(days.Data[0].Units[0].Slots) != 1 || days.Data[0].Price.Amount != 12350 {
			t.Fatalf("the clock skips half an hour of the opening, which leaves one slot: %+v", days)
		}
		return days.Data[0].Units[0].Slots[0].Status
	}
	if got := slots(); got != "available" {
		t.Errorf("the slot is %s", got)
	}
	slot := days.Data[0].Units[0].Slots[0]
	body := fmt.Sprintf(`{"unit_id":%q,"package_id":%q,"starts_at":%q,"ends_at":%q,"hold_minutes":60}`, unit, pack, slot.From, slot.To)
	id := c.want(t, http.StatusCreated, http.MethodPost, "/bookings", body).id(t)
	if a := c.do(t, http.MethodPost, "/bookings", body, ""); a.code() != "slot_unavailable" {
		t.Errorf("the slot that is held: %d %s", a.Status, a.Body)
	}
	if got := slots(); got != "held" {
		t.Errorf("the slot is %s", got)
	}
	later := time.Now().Add(time.Hour + time.Minute).UTC().Format(time.RFC3339)
	c.want(t, http.StatusOK, http.MethodPost, "/test-clock", fmt.Sprintf(`{"now":%q}`, later))
	if got := slots(); got != "available" {
		t.Errorf("after the hold the slot is %s", got)
	}
	await(t, "the expiry has its event", func() bool {
		events := shared.events(t, "bookings")[id]
		return len(events) == 2 && events[1].GetType() == "booking.updated" && strings.Contains(string(events[1].GetObject()), `"expired"`)
	})
	c.want(t, http.StatusCreated, http.MethodPost, "/bookings", body)
}

// identity runs bin/identity in the checkout's folder, as an operator would, and decodes its output.
func (p *platform) identity(t *testing.T, out any, args ...string) {
	t.Helper()
	if p.cluster != nil { // port forwarding moves from a crashed pod to the next one
		await(t, "PostgreSQL and Redis are reached", func() bool {
			conn, err := pgx.Connect(t.Context(), p.env["POSTGRES_URL"])
			return err == nil && conn.Close(t.Context()) == nil && p.redis(t).Ping(t.Context()).Err() == nil
		})
	}
	cmd := p.command("identity", args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("identity %v: %v\n%s", args, err, complaint.String())
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("identity %v: %v\n%s", args, err, text)
	}
}
