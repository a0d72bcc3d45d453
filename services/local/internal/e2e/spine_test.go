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
)

func TestAPricedBookingGoesAllTheWay(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	var customer, booking map[string]any
	c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`).decode(t, &customer)
	pkg := packageWithDeposit(t, c)
	unit := c.list(t, "/units?active=true&service_id="+pkg["service_id"].(string))[0]
	if ids, _ := pkg["unit_ids"].([]any); len(ids) > 0 {
		c.want(t, http.StatusOK, http.MethodGet, "/units/"+ids[0].(string), "").decode(t, &unit)
	}
	body := fmt.Sprintf(`{"customer_id":%q,"package_id":%q,"unit_id":%q,"event_date":"2031-03-05","event_start_time":"10:00","event_end_time":"12:00"}`,
		customer["id"], pkg["id"], unit["id"])
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

func TestRequestsGoOnWhileRedisIsDown(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	c.want(t, http.StatusOK, http.MethodGet, "/me", "")
	shared.kill(t, "redis")
	for range 20 { // the supervisor brings Redis back within these
		if a := c.do(t, http.MethodGet, "/customers?limit=1", "", ""); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	rdb := shared.redis(t)
	await(t, "Redis is back", func() bool { return rdb.Ping(t.Context()).Err() == nil })
}

// Fifty clients want one slot: one gets it, the others are told so, and nothing else happens.
func TestFiftyClientsOneSlot(t *testing.T) {
	c := shared.as(t, "DEMO_TEST_KEY")
	unit := c.list(t, "/units?active=true&limit=1")[0]
	body := fmt.Sprintf(`{"unit_id":%q,"event_date":"2032-05-0%d","event_start_time":"10:00","event_end_time":"12:00"}`, unit["id"], 1+rand.IntN(9))
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

// A key is refused on the very next request after its revocation, however warm the gateway's caches are.
func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	for range rounds(3) {
		var made struct{ ID, Secret string }
		shared.identity(t, &made, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all", "--json")
		c := shared.with(t, made.Secret)
		for range 5 {
			c.want(t, http.StatusOK, http.MethodGet, "/customers?limit=1", "")
		}
		shared.identity(t, nil, "key", "revoke", made.ID)
		if a := c.do(t, http.MethodGet, "/customers?limit=1", "", ""); a.Status != http.StatusUnauthorized || a.code() != "revoked_credential" {
			t.Errorf("the request after the revocation: %d %s", a.Status, a.Body)
		}
	}
}

// identity runs bin/identity as a person does in the checkout's folder, and decodes what it prints.
func (p *platform) identity(t *testing.T, out any, args ...string) {
	t.Helper()
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
