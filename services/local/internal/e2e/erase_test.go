package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pgtest"
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

// retainedTable is the table whose rows outlive a tenant. They contain its id and numbers.
const retainedTable = "usage_days"

// remains returns the tables of all databases of the platform with a row that contains one of the texts, except the marks of erasures and
// the usage.
func (p *platform) remains(t *testing.T, texts ...string) (found []string) {
	t.Helper()
	list := p.database(t, "identity")
	names := rows(t, list, `select datname from pg_database where datname like 'holdfast\_%' order by 1`)
	_ = list.Close(t.Context()) // a test calls this often, and the server has a limited number of connections
	for _, name := range names {
		conn := p.database(t, strings.TrimPrefix(name, "holdfast_"))
		tables := pgtest.Find(t, conn, texts...)
		_ = conn.Close(t.Context())
		for _, table := range tables {
			if !strings.HasPrefix(table, "tenant_erasures: ") && !strings.HasPrefix(table, retainedTable+": ") {
				found = append(found, name+"."+table)
			}
		}
	}
	return found
}

// remains returns the tables of all databases with a row that contains the id of the tenant.
func (a account) remains(t *testing.T) []string {
	t.Helper()
	id, err := ids.Parse[ids.TenantPrefix](a.id)
	if err != nil {
		t.Fatal(err)
	}
	return a.p.remains(t, pgtest.Forms(id)...)
}

// personal are values that occur nowhere else: those of a tenant's customers, leads and owners, and its own name.
type personal map[string]string

func newPersonal() personal {
	v := personal{}
	for _, name := range []string{
		"customer", "surname", "company", "lead", "message", "owner", "tenant", "booking", "feed", "key", "title", "external", "contact",
	} {
		v[name] = name + strings.ReplaceAll(unique("p"), "-", "")
	}
	for _, name := range []string{"customer", "lead", "owner"} {
		v[name+" address"] = v[name] + "@example.com"
	}
	return v
}

// text replaces {name} by the value.
func (v personal) text(s string) string {
	for name, value := range v {
		s = strings.ReplaceAll(s, "{"+name+"}", value)
	}
	return s
}

// nothing checks that no database contains the id of the tenant or one of its values.
func (a account) nothing(t *testing.T, values personal, how string) {
	t.Helper()
	if found := a.remains(t); len(found) != 0 {
		t.Errorf("%s: %q", how, found)
	}
	for what, value := range values {
		if found := a.p.remains(t, value); len(found) != 0 {
			t.Errorf("%s: %s %q in %q", how, what, value, found)
		}
	}
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

// fill adds data to every service, in both modes, and returns the id of a customer, the address of a calendar, and the personal values
// of the data.
func (m merchant) fill(t *testing.T) (customer, calendar string, v personal) {
	t.Helper()
	v = newPersonal()
	v["slug"] = m.slug
	person := v.text(`{"first_name":"{customer}","last_name":"{surname}","email":"{customer address}","company":"{company}"}`)
	customer = m.insist(t, http.MethodPost, "/customers", person, unique("customer"), http.StatusCreated).id(t)
	booking := m.insist(t, http.MethodPost, "/bookings", fmt.Sprintf(v.text(`{"event_date":"2034-01-02","customer_id":%q,"notes":"{booking}"}`), customer),
		unique("booking"), http.StatusCreated).id(t)
	m.insist(t, http.MethodPatch, "/bookings/"+booking, v.text(`{"notes":"{booking} again"}`), unique("change"), http.StatusOK)
	created, _ := deposit(t, m.client)
	m.confirm(t, created, "pm_card_visa")
	await(t, "the payment has arrived", func() bool { return read[intent](t, m.client, "/payment-intents/"+created.ID).Status == "succeeded" })
	m.insist(t, http.MethodPost, "/leads", v.text(`{"first_name":"{lead}","email":"{lead address}","source":"website","message":"{message}"}`), unique("lead"), http.StatusCreated)
	m.insist(t, http.MethodPost, "/quotes", fmt.Sprintf(v.text(`{"customer_id":%q,"event_date":"2034-01-02","notes":"{title}",`+
		`"line_items":[{"description":"{title}","quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}]}`), customer), unique("quote"), http.StatusCreated)
	var feed struct{ URL string }
	m.want(t, http.StatusCreated, http.MethodPost, "/calendar-feeds", v.text(`{"name":"{feed}"}`)).decode(t, &feed)
	var key struct{ Secret string }
	shared.identity(t, nil, "tenant", "update", m.slug, "--name", v["tenant"], "--external-id", v["external"], "--metadata", v.text(`{"contact":"{contact}"}`), "--json")
	shared.identity(t, &key, "key", "create", "--tenant", m.tenant, "--mode", "live", "--name", v["key"], "--scopes", "all", "--json")
	shared.with(t, key.Secret).insist(t, http.MethodPost, "/customers", person, unique("customer"), http.StatusCreated)
	shared.identity(t, nil, "operator", "invite", v["owner address"], "--tenant", m.tenant, "--name", v["owner"], "--role", "owner", "--json")
	return customer, feed.URL, v
}

// TestAClosedTenantIsErased closes a tenant with data in every service, reads its data, and then erases it while each service is killed.
// Nothing of it is left, events that arrive later bring nothing back, and another tenant notices nothing.
func TestAClosedTenantIsErased(t *testing.T) {
	onMachine(t)
	p := shared
	m, neighbor := newMerchant(t, "USD"), newMerchant(t, "USD")
	a := account{p, m.tenant, m.client}
	r := a.receive(t, `["*"]`, nil)
	customer, calendar, values := m.fill(t)
	retained, _, _ := neighbor.fill(t)
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
	for what, value := range values {
		if len(p.remains(t, value)) == 0 {
			t.Errorf("the test writes no %s", what)
		}
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
	a.nothing(t, values, "left")
	for topic, messages := range late {
		p.produce(t, topic, messages...)
	}
	next := neighbor.insist(t, http.MethodPost, "/customers", newCustomer().body, unique("customer"), http.StatusCreated).id(t)
	await(t, "later events have arrived", func() bool { return len(neighbor.list(t, "/events?object_id="+next)) == 1 })
	time.Sleep(2 * time.Second) // as the other consumers would take
	a.nothing(t, values, "brought back")
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
