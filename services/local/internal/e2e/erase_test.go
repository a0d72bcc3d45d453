package e2e

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/outbox"
	"holdfast.dev/proto"
)

// stores returns the services that have a database.
func stores() (names []string) {
	for _, s := range proto.Services() {
		if s.Database {
			names = append(names, s.Name)
		}
	}
	return names
}

// topics returns the topics of events.
func topics() (names []string) {
	for _, s := range proto.Services() {
		if s.Database {
			names = append(names, s.Topics...)
		}
	}
	return names
}

// forms returns the id of a tenant as it can be in a row: as a uuid, as text, and as bytes.
func (a account) forms(t *testing.T) []string {
	t.Helper()
	u := a.uuid(t)
	raw := hex.EncodeToString(u[:])
	dashed := fmt.Sprintf("%s-%s-%s-%s-%s", raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])
	return []string{a.id, dashed, raw, hex.EncodeToString([]byte(a.id)), hex.EncodeToString([]byte(dashed))}
}

// remains returns the tables of all databases with a row that contains the id of the tenant, except the marks of erasures.
func (a account) remains(t *testing.T) (found []string) {
	t.Helper()
	for _, service := range stores() {
		conn := a.p.database(t, service)
		for _, table := range rows(t, conn, `select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'tenant_erasures'`) {
			n := rows(t, conn, `select count(*)::text from only `+table+` r where exists (select from unnest($1::text[]) w where position(w in lower(r::text)) > 0)`, a.forms(t))
			if n[0] != "0" {
				found = append(found, service+"."+table+": "+n[0])
			}
		}
	}
	return found
}

// cached checks that each key of Redis with the tenant's id expires within a day.
func (a account) cached(t *testing.T) {
	t.Helper()
	client := a.p.redis(t)
	keys := client.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		value := client.Dump(t.Context(), keys.Val()).Val()
		left := client.TTL(t.Context(), keys.Val()).Val()
		if strings.Contains(keys.Val()+value, a.id) && (left <= 0 || left > 24*time.Hour) {
			t.Errorf("Redis keeps %s for %s", keys.Val(), left)
		}
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
}

// erased reports whether identity has recorded the end of the erasure.
func (a account) erased(t *testing.T, identity *pgx.Conn) bool {
	t.Helper()
	return len(rows(t, identity, `select tenant_id::text from tenant_erasures where tenant_id = $1 and erased_at is not null`, a.uuid(t))) == 1
}

// fill adds data to every service, in both modes, and returns the id of a customer and the address of a calendar.
func (m merchant) fill(t *testing.T) (customer, calendar string) {
	t.Helper()
	customer = m.insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated).id(t)
	created, _ := deposit(t, m.client)
	m.confirm(t, created, "pm_card_visa")
	await(t, "the payment has arrived", func() bool { return read[intent](t, m.client, "/payment-intents/"+created.ID).Status == "succeeded" })
	m.insist(t, http.MethodPost, "/leads", `{"first_name":"Grace","email":"grace@example.com","source":"website"}`, unique("lead"), http.StatusCreated)
	var feed struct{ URL string }
	m.want(t, http.StatusCreated, http.MethodPost, "/calendar-feeds", `{"name":"all"}`).decode(t, &feed)
	var key struct{ Secret string }
	shared.identity(t, &key, "key", "create", "--tenant", m.tenant, "--mode", "live", "--scopes", "all", "--json")
	shared.with(t, key.Secret).insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated)
	shared.identity(t, nil, "operator", "invite", unique("owner")+"@example.com", "--tenant", m.tenant, "--name", "Olive", "--role", "owner", "--json")
	return customer, feed.URL
}

// TestAClosedTenantIsErased closes a tenant with data in every service, reads its data, and then erases it while each service is killed.
// Nothing of it is left, events that arrive later bring nothing back, and another tenant notices nothing.
func TestAClosedTenantIsErased(t *testing.T) {
	onMachine(t)
	p := shared
	m, neighbor := newMerchant(t, "USD"), newMerchant(t, "USD")
	a := account{p, m.tenant, m.client}
	r := a.receive(t, `["*"]`, nil)
	customer, calendar := m.fill(t)
	retained, _ := neighbor.fill(t)
	await(t, "webhooks arrive", func() bool { return len(r.all(t)) > 3 })
	await(t, "requests are logged", func() bool { return len(a.list(t, "/request-logs?method=POST&limit=100")) > 3 })
	replayed := unique("replay")
	a.insist(t, http.MethodPost, "/customers", newCustomer().body, replayed, http.StatusCreated)
	late := map[string][]*kgo.Record{}
	for _, topic := range topics() {
		for _, record := range p.messages(t, topic) {
			if e, err := outbox.Decode(record.Value); err == nil && e.GetTenantId() == a.id {
				late[topic] = append(late[topic], &kgo.Record{Partition: record.Partition, Key: record.Key, Value: record.Value, Headers: record.Headers})
			}
		}
	}

	p.identity(t, nil, "tenant", "close", a.id, "--reason", "The contract has ended", "--json")
	for _, list := range []string{"/customers", "/bookings", "/invoices", "/quotes", "/leads", "/payment-intents", "/events", "/request-logs", "/webhook-endpoints", "/customers/" + customer + "/export"} {
		a.want(t, http.StatusOK, http.MethodGet, list, "")
	}
	for _, w := range []struct{ method, path, body, key string }{
		{http.MethodPost, "/customers", newCustomer().body, replayed},
		{http.MethodPost, "/customers", newCustomer().body, ""},
		{http.MethodPatch, "/customers/" + customer, `{"first_name":"Eva"}`, ""},
		{http.MethodDelete, "/customers/" + customer, "", ""},
		{http.MethodPost, "/bookings", newBooking().body, ""},
		{http.MethodPost, "/leads", `{"first_name":"Grace"}`, ""},
	} {
		if got := a.do(t, w.method, w.path, w.body, w.key); got.Status != http.StatusForbidden || got.code() != "tenant_suspended" || !strings.Contains(string(got.Body), "until 20") {
			t.Errorf("%s %s: %d %s", w.method, w.path, got.Status, got.Body)
		}
	}
	if res, err := httpClient.Get(calendar); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the calendar of a closing tenant: %v %v", res, err)
	}
	helper := connectWith(t, a.key)
	if text, _, failed := helper.call("get_record", map[string]any{"id": customer}); failed {
		t.Errorf("an assistant cannot read: %s", text)
	}
	if text, _, failed := helper.call("create_customer", map[string]any{"first_name": "Ada", "email": "ada@example.com", "request_key": "x"}); !failed || !strings.Contains(text, "tenant_suspended") {
		t.Errorf("an assistant writes: %s", text)
	}
	if len(a.remains(t)) < 30 {
		t.Fatalf("the tenant has data only in %q", a.remains(t))
	}

	identity := p.database(t, "identity")
	execute(t, identity, `update tenants set erase_at = now() where tenant_id = $1`, a.uuid(t))
	await(t, "the erasure begins", func() bool {
		return len(rows(t, identity, `select tenant_id::text from tenant_erasures where tenant_id = $1`, a.uuid(t))) == 1
	})
	for _, service := range stores() {
		p.kill(t, service)
		time.Sleep(200 * time.Millisecond)
	}
	patient(t, "the tenant is erased", func() bool { return a.erased(t, identity) })
	if left := a.remains(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	for topic, messages := range late {
		p.produce(t, topic, messages...)
	}
	next := neighbor.insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated).id(t)
	await(t, "later events have arrived", func() bool { return len(neighbor.list(t, "/events?object_id="+next)) == 1 })
	time.Sleep(2 * time.Second) // as the other consumers would take
	if left := a.remains(t); len(left) != 0 {
		t.Errorf("brought back: %q", left)
	}
	a.cached(t)
	await(t, "the credential is unknown", func() bool {
		got := a.do(t, http.MethodGet, "/me", "", "")
		return got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden
	})
	neighbor.want(t, http.StatusOK, http.MethodGet, "/customers/"+retained, "")
	if n := len(neighbor.list(t, "/customers?limit=100")); n < 3 {
		t.Errorf("the neighbor has %d customers", n)
	}
}
