package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hit is one delivery that a receiver got.
type hit struct {
	at                       time.Time
	delivery, event, attempt string
	kind, object, tag, body  string // of the event
	created                  time.Time
}

// receiver is an endpoint's server: it checks each signature and records the deliveries.
type receiver struct {
	id, secret string
	mu         sync.Mutex
	hits       []hit
	wrong      []string
}

// receive registers an endpoint for the types and serves it until the test ends. handler can be nil.
func (c *client) receive(t *testing.T, types string, handler http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	srv := serveReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the sender crashed
		}
		r.record(req.Header, body)
		if handler != nil {
			handler(w, req)
		}
	})
	body := fmt.Sprintf(`{"url":%q,"event_types":%s,"max_in_flight":50,"max_per_second":2000}`, srv.URL+"/hook", types)
	r.register(t, c, body)
	return r
}

// serveReceiver serves requests from the platform until the test ends.
func serveReceiver(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	_ = srv.Listener.Close()
	var err error
	if srv.Listener, err = net.Listen("tcp", net.JoinHostPort(receivers, "0")); err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

func (r *receiver) register(t *testing.T, c *client, body string) {
	t.Helper()
	var created struct{ ID, Secret string }
	r.mu.Lock() // deliveries wait for the secret
	defer r.mu.Unlock()
	c.insist(t, http.MethodPost, "/webhook-endpoints", body, unique("we"), http.StatusCreated).decode(t, &created)
	r.id, r.secret = created.ID, created.Secret
	t.Cleanup(func() {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodDelete, c.base+"/webhook-endpoints/"+created.ID, nil) // the test's own context has ended
		req.Header.Set("Authorization", "Bearer "+c.key)
		if res, err := httpClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	})
}

func (r *receiver) record(h http.Header, body []byte) {
	var e struct {
		Type    string
		Created time.Time `json:"created_at"`
		Data    struct {
			Object struct {
				ID       string
				Metadata map[string]string
			}
		}
	}
	err := json.Unmarshal(body, &e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !signed(h.Get("Service-Signature"), body, r.secret) {
		r.wrong = append(r.wrong, fmt.Sprintf("%v %s %s", err, h.Get("Service-Signature"), body))
	}
	r.hits = append(r.hits, hit{
		at: time.Now(), delivery: h.Get("Service-Delivery-Id"), event: h.Get("Service-Event-Id"), attempt: h.Get("Service-Delivery-Attempt"),
		kind: e.Type, object: e.Data.Object.ID, tag: e.Data.Object.Metadata["tag"], created: e.Created,
		body: string(body),
	})
}

// signed verifies a signature as docs/guides/webhooks.md describes.
func signed(header string, body []byte, secret string) bool {
	var t string
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" {
			t = value
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(t + "."))
		mac.Write(body)
		if name == "v1" && value == hex.EncodeToString(mac.Sum(nil)) {
			return true
		}
	}
	return false
}

// all returns the deliveries so far.
func (r *receiver) all(t *testing.T) []hit {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong {
		t.Errorf("not signed by the endpoint's secret: %s", w)
	}
	return slices.Clone(r.hits)
}

// objects counts the deliveries of events of a type by the object's id.
func objects(hits []hit, kind string) map[string]int {
	out := map[string]int{}
	for _, h := range hits {
		if h.kind == kind {
			out[h.object]++
		}
	}
	return out
}

// TestEventsArriveWithinASecond checks that a receiver registered through the API gets customer.created and booking.created within
// a second of the POST. On a busy machine, it can take longer once or twice, but not three times.
func TestEventsArriveWithinASecond(t *testing.T) { checkEventsArriveWithinASecond(t, shared) }

func checkEventsArriveWithinASecond(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	r := c.receive(t, `["customer.created","booking.created"]`, nil)
	for _, w := range []write{newCustomer(), newBooking()} {
		var took []time.Duration
		for range 3 {
			w.key = unique("second")
			start := time.Now()
			id := c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated).id(t)
			await(t, w.created, func() bool { return objects(r.all(t), w.created)[id] > 0 })
			took = append(took, time.Since(start))
		}
		if best := slices.Min(took); best > time.Second {
			t.Errorf("%s took %v", w.created, took)
		}
		t.Logf("%s after %v", w.created, took)
	}
}

// TestDeliveriesUnderKills makes two thousand changes while the delivering process, the publishing service, and Kafka are killed
// at random. It checks that each change is delivered, that only committed changes are delivered, and that a delivery succeeds
// twice only if the process crashed between the receiver's response and its own commit.
func TestDeliveriesUnderKills(t *testing.T) {
	p := shared
	c := p.as(t, "OTHER_TEST_KEY")
	r := c.receive(t, `["customer.created"]`, nil)
	run := unique("fire")
	const events = 2000
	var mu sync.Mutex
	created, crashes := map[string]bool{}, [][2]time.Time{} // when a kill began and ended: in a cluster it takes its time
	var writers sync.WaitGroup
	for worker := range 8 {
		writers.Go(func() {
			for n := range events / 8 {
				body := fmt.Sprintf(`{"first_name":"F","email":"f@example.com","metadata":{"tag":%q}}`, run)
				id := c.insist(t, http.MethodPost, "/customers", body, fmt.Sprintf("%s-%d-%d", run, worker, n), http.StatusCreated).id(t)
				mu.Lock()
				created[id] = true
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	for going := true; going; {
		select {
		case <-done:
			going = false
		case <-time.After(time.Duration(500+rand.IntN(1000)) * time.Millisecond):
		}
		victim := []string{"webhooks", "webhooks", "customers", p.broker()}[rand.IntN(4)]
		begin := time.Now()
		p.kill(t, victim)
		if victim == "webhooks" {
			crashes = append(crashes, [2]time.Time{begin, time.Now()})
		}
	}
	begin := time.Now()
	p.kill(t, "webhooks")
	crashes = append(crashes, [2]time.Time{begin, time.Now()})
	mine := func() []hit { return slices.DeleteFunc(r.all(t), func(h hit) bool { return h.tag != run }) }
	patient(t, fmt.Sprintf("%d events", events), func() bool { return len(objects(mine(), "customer.created")) >= events })
	patient(t, "the log knows", func() bool {
		return len(c.list(t, "/webhook-endpoints/"+r.id+"/deliveries?status=pending&limit=1")) == 0
	})
	patient(t, "nothing is on its way", func() bool {
		return len(c.list(t, "/webhook-endpoints/"+r.id+"/deliveries?status=delivering&limit=1")) == 0
	})
	first, twice := map[string]time.Time{}, 0
	for _, h := range mine() {
		before, again := first[h.delivery]
		if !again {
			first[h.delivery] = h.at
			continue
		}
		twice++
		// A request can be read shortly after its process crashed.
		if !slices.ContainsFunc(crashes, func(c [2]time.Time) bool {
			return c[1].After(before.Add(-time.Second)) && c[0].Sub(before) < 3*time.Second
		}) {
			t.Errorf("%s came at %v and at %v, and no process crashed in between (%v)", h.delivery, before, h.at, crashes)
		}
	}
	got := objects(mine(), "customer.created")
	for id := range got {
		if !created[id] {
			t.Errorf("%s was delivered, and never with a response", id)
		}
	}
	if len(first) != events || len(got) != events {
		t.Errorf("%d deliveries of %d objects, want %d", len(first), len(got), events)
	}
	t.Logf("%d events, %d crashes of webhooks, %d deliveries made twice", events, len(crashes), twice)
}

// patient waits for a condition that might be delayed until a crashed process's claim ends.
func patient(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 2 minutes: %s", what)
		}
	}
}

// TestSlowEndpointsDelayNoOther checks that a dead endpoint, and one that does not respond for ten seconds, do not delay the
// events of eight other endpoints of two tenants. The test measures time, so it has three attempts on a busy machine.
func TestSlowEndpointsDelayNoOther(t *testing.T) {
	c, other := shared.as(t, "DEMO_TEST_KEY"), shared.as(t, "OTHER_TEST_KEY")
	silent := make(chan struct{})
	c.receive(t, `["customer.created"]`, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(silent) }) // before its server is closed, which waits for it
	gone, err := net.Listen("tcp", net.JoinHostPort(receivers, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	(&receiver{}).register(t, c, fmt.Sprintf(`{"url":"http://%s/","event_types":["customer.created"]}`, gone.Addr()))
	var good []*receiver
	for i := range 8 {
		good = append(good, []*client{c, other}[i%2].receive(t, `["customer.created"]`, nil))
	}
	for try := 1; ; try++ {
		run := unique("fair")
		want := map[string]int{}
		for i := range 200 {
			from := []*client{c, other}[i%2]
			body := fmt.Sprintf(`{"first_name":"F","email":"f@example.com","metadata":{"tag":%q}}`, run)
			want[from.insist(t, http.MethodPost, "/customers", body, unique("fair"), http.StatusCreated).id(t)] = 4
		}
		var waits []time.Duration
		patient(t, "four deliveries of each event", func() bool {
			got := map[string]int{}
			waits = waits[:0]
			for _, r := range good {
				for _, h := range r.all(t) {
					if h.tag == run {
						got[h.object]++
						waits = append(waits, h.at.Sub(h.created))
					}
				}
			}
			return maps.Equal(got, want)
		})
		slices.Sort(waits)
		p99 := waits[len(waits)*99/100]
		t.Logf("try %d: %d deliveries, p50 %v, p99 %v", try, len(waits), waits[len(waits)/2], p99)
		if p99 < time.Second {
			break
		}
		if try == 3 {
			t.Errorf("the good endpoints wait: p99 %v", p99)
			break
		}
	}
	if n := len(c.list(t, "/webhook-endpoints?status=enabled&limit=100")); n < 5 {
		t.Errorf("%d endpoints are left", n)
	}
}

// TestADisabledEndpointIsAudited checks that an endpoint that responds with 410 is disabled, that the audit log contains this, and
// that its chain is valid.
func TestADisabledEndpointIsAudited(t *testing.T) {
	c := shared.as(t, "OTHER_TEST_KEY")
	r := c.receive(t, `["customer.created"]`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	c.insist(t, http.MethodPost, "/customers", `{"first_name":"G","email":"g@example.com"}`, unique("gone"), http.StatusCreated)
	await(t, "disabled", func() bool {
		var e struct {
			Status string
			Reason string `json:"disabled_reason"`
		}
		c.insist(t, http.MethodGet, "/webhook-endpoints/"+r.id, "", "", http.StatusOK).decode(t, &e)
		return e.Status == "disabled" && e.Reason == "gone"
	})
	identity := shared.database(t, "identity")
	await(t, "a line in the audit log", func() bool {
		return slices.Equal(rows(t, identity, `select actor || ' ' || action || ' ' || livemode::text from audit_log where object = $1 and actor = 'svc:webhooks'`, r.id),
			[]string{"svc:webhooks webhook_endpoint.disabled false"})
	})
	if out, err := shared.command("identity", "audit", "verify").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestErasureReachesTheEvents checks that the erasure of a customer also erases the customer's data in the event log.
func TestErasureReachesTheEvents(t *testing.T) {
	c := shared.as(t, "OTHER_TEST_KEY")
	id := c.insist(t, http.MethodPost, "/customers", `{"first_name":"Erasmus","email":"erasmus@example.com"}`, unique("erase"), http.StatusCreated).id(t)
	body := func() string {
		return string(c.insist(t, http.MethodGet, "/events?object_id="+id, "", "", http.StatusOK).Body)
	}
	await(t, "the event", func() bool { return strings.Contains(body(), "Erasmus") })
	c.insist(t, http.MethodDelete, "/customers/"+id, "", "", http.StatusNoContent)
	await(t, "the erasure", func() bool { return !strings.Contains(body(), "rasmus") && strings.Contains(body(), id) })
}

// TestErasureWithoutKafka erases a customer while Kafka is away. It checks that an endpoint gets one customer.updated with erased_at and
// without personal data after Kafka is back, and none before.
func TestErasureWithoutKafka(t *testing.T) {
	p := shared
	c := p.as(t, "OTHER_TEST_KEY")
	r := c.receive(t, `["customer.created","customer.updated"]`, nil)
	create := func(name string) string {
		body := fmt.Sprintf(`{"first_name":%q,"email":"kafkaless@example.com","phone":"+15550100","metadata":{"tag":"kafkaless"}}`, name)
		return c.insist(t, http.MethodPost, "/customers", body, unique("kafkaless"), http.StatusCreated).id(t)
	}
	id := create("Kafkaless")
	erasures := func() []hit {
		return slices.DeleteFunc(r.all(t), func(h hit) bool { return h.kind != "customer.updated" || h.object != id })
	}
	await(t, "the customer", func() bool { return objects(r.all(t), "customer.created")[id] == 1 })
	p.signal(t, p.broker(), syscall.SIGSTOP)
	c.insist(t, http.MethodDelete, "/customers/"+id, "", "", http.StatusNoContent)
	if got := erasures(); len(got) > 0 {
		t.Errorf("events while Kafka is away: %+v", got)
	}
	p.signal(t, p.broker(), syscall.SIGCONT)
	patient(t, "the erasure", func() bool { return len(erasures()) > 0 })
	later := create("Later")
	patient(t, "a later event", func() bool { return objects(r.all(t), "customer.created")[later] == 1 })
	got := erasures()
	if len(got) != 1 || strings.Contains(got[0].body, "afkaless") || strings.Contains(got[0].body, "5550100") {
		t.Fatalf("the erasure was delivered as %+v", got)
	}
	checkErasure(t, got[0].body)
}

// checkErasure checks that the body of an event shows an erased customer, and names the changed fields without their earlier values.
func checkErasure(t *testing.T, body string) {
	t.Helper()
	var e struct {
		Data struct {
			Object   map[string]any `json:"object"`
			Previous map[string]any `json:"previous_attributes"`
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	o := e.Data.Object
	if erased, _ := o["erased_at"].(string); erased == "" || o["email"] != nil || o["phone"] != nil || o["first_name"] != "" || o["name"] != "" {
		t.Errorf("the erased customer is %v", o)
	}
	if _, named := e.Data.Previous["email"]; !named || e.Data.Previous["email"] != nil {
		t.Errorf("previous_attributes are %v", e.Data.Previous)
	}
}

// TestListenAndTrigger checks the commands for developers of receivers: listen forwards the events of trigger to a local URL, over a
// stream that survives restarts of the processes behind it.
func TestListenAndTrigger(t *testing.T) {
	var mu sync.Mutex
	came := map[string]int{}
	var first http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = req.Header.Clone()
		}
		came[req.Header.Get("Service-Event-Type")]++
	}))
	defer srv.Close()
	listen := shared.holdfast("OTHER_TEST_KEY", "listen", "--forward-to", srv.URL, "--events", "customer.created,customer.updated,booking.created,booking.updated,booking.cancelled")
	said := &transcript{}
	listen.Stdout, listen.Stderr = said, said
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(listen)
	await(t, "the secret", func() bool { return strings.Contains(said.String(), "whsec_") })
	trigger := func(kind string) (out []byte, err error) {
		return shared.holdfast("OTHER_TEST_KEY", "trigger", kind).CombinedOutput()
	}
	has := func(kind string) bool {
		mu.Lock()
		defer mu.Unlock()
		return came[kind] > 0
	}
	patient(t, "the stream", func() bool { // there is no other sign that it is open, and a process that an earlier test killed might still be starting
		if out, err := trigger("customer.created"); err != nil {
			t.Logf("trigger: %v %s", err, out)
		}
		return has("customer.created")
	})
	for i, kind := range []string{"customer.created", "customer.updated", "booking.created", "booking.updated", "booking.cancelled"} {
		if i == 2 {
			shared.kill(t, "webhooks") // the stream continues after the last event
		}
		if i == 3 {
			shared.kill(t, "gateway")
			shared.ended(t, "gateway") // the commands below do not retry
			c := shared.as(t, "OTHER_TEST_KEY")
			c.list(t, "/customers?limit=1")
		}
		if out, err := trigger(kind); err != nil {
			t.Fatalf("trigger %s: %v %s", kind, err, out)
		}
		patient(t, kind, func() bool { return has(kind) })
	}
	mu.Lock()
	defer mu.Unlock()
	if first.Get("Service-Signature") == "" || first.Get("Webhook-Id") == "" {
		t.Errorf("forwarded without a signature: %v", first)
	}
	t.Logf("%v\n%s", came, said)
}

func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
