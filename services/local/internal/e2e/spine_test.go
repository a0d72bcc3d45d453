package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"holdfast.dev/libs/outbox"
)

// rounds scales with TEST_SCALE=full.
func rounds(n int) int {
	if os.Getenv("TEST_SCALE") == "full" {
		return n * 10
	}
	return n
}

// unique makes a value that no earlier run has left behind.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, rand.Uint64()) }

func TestAPricedBookingGoesAllTheWay(t *testing.T) {
	c := as(t, "DEMO_TEST_KEY")
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
	if again := c.do(t, http.MethodPost, "/bookings", body, nil); again.Status != http.StatusConflict || again.code() != "slot_unavailable" {
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

// Processes on the request's way die at random moments; the client does what the documentation says and
// repeats with the same key. Each operation then exists exactly once.
func TestEachKeyTakesEffectOnceWhateverDies(t *testing.T) {
	c := as(t, "DEMO_TEST_KEY")
	for _, victim := range []string{"customers", "gateway"} {
		t.Run(victim, func(t *testing.T) {
			for range rounds(6) {
				tag := unique("kill")
				body := fmt.Sprintf(`{"first_name":"K","email":"k@example.com","metadata":{"tag":%q}}`, tag)
				key := map[string]string{"Idempotency-Key": tag}
				var wg sync.WaitGroup
				wg.Go(func() {
					time.Sleep(time.Duration(rand.IntN(12_000)) * time.Microsecond)
					kill(t, victim)
				})
				first, _ := c.try(t, http.MethodPost, "/customers", body, key)
				wg.Wait()
				var second answer
				await(t, "a 201 after "+victim+" died", func() bool {
					var err error
					second, err = c.try(t, http.MethodPost, "/customers", body, key)
					return err == nil && second.Status == http.StatusCreated
				})
				if first.Status == http.StatusCreated && string(first.Body) != string(second.Body) {
					t.Errorf("the replay differs: %s, then %s", first.Body, second.Body)
				}
				path := "/customers?metadata[tag]=" + tag
				await(t, "a list: the replay may come from the cache while the service still starts", func() bool {
					a, err := c.try(t, http.MethodGet, path, "", nil)
					return err == nil && a.Status == http.StatusOK
				})
				if n := len(c.list(t, path)); n != 1 {
					t.Fatalf("%d customers were created with one key", n)
				}
			}
		})
	}
}

func TestAFlushedRedisForgetsNoKey(t *testing.T) {
	c := as(t, "DEMO_TEST_KEY")
	tag := unique("flush")
	body := fmt.Sprintf(`{"first_name":"F","email":"f@example.com","metadata":{"tag":%q}}`, tag)
	key := map[string]string{"Idempotency-Key": tag}
	first := c.do(t, http.MethodPost, "/customers", body, key)
	opt, err := redis.ParseURL(started.env["REDIS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	defer func() { _ = rdb.Close() }()
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	second := c.do(t, http.MethodPost, "/customers", body, key)
	if first.Status != http.StatusCreated || second.Status != http.StatusCreated || string(first.Body) != string(second.Body) {
		t.Errorf("%d %s, then %d %s", first.Status, first.Body, second.Status, second.Body)
	}
	if second.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the replay is not marked")
	}
	if other := c.do(t, http.MethodPost, "/customers", `{"first_name":"G","email":"g@example.com"}`, key); other.code() != "idempotency_mismatch" {
		t.Errorf("another body with the key: %d %s", other.Status, other.Body)
	}
}

func TestRequestsGoOnWhileRedisIsDown(t *testing.T) {
	c := as(t, "DEMO_TEST_KEY")
	c.want(t, http.StatusOK, http.MethodGet, "/me", "")
	kill(t, "redis")
	for range 20 { // the supervisor brings Redis back within these
		if a := c.do(t, http.MethodGet, "/customers?limit=1", "", nil); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	await(t, "Redis is back", func() bool {
		opt, err := redis.ParseURL(started.env["REDIS_URL"])
		if err != nil {
			t.Fatal(err)
		}
		rdb := redis.NewClient(opt)
		defer func() { _ = rdb.Close() }()
		return rdb.Ping(t.Context()).Err() == nil
	})
}

// Fifty clients want one slot: one gets it, the others are told so, and nothing else happens.
func TestFiftyClientsOneSlot(t *testing.T) {
	c := as(t, "DEMO_TEST_KEY")
	unit := c.list(t, "/units?active=true&limit=1")[0]
	body := fmt.Sprintf(`{"unit_id":%q,"event_date":"2032-05-0%d","event_start_time":"10:00","event_end_time":"12:00"}`, unit["id"], 1+rand.IntN(9))
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a, err := c.try(t, http.MethodPost, "/bookings", body, nil)
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

// The service whose relay publishes is killed at random while customers are created; each committed
// customer then has exactly one customer.created in Kafka, by event id.
func TestEveryCommittedChangeHasItsEvent(t *testing.T) {
	c := as(t, "OTHER_TEST_KEY")
	committed := map[string]bool{}
	var mu sync.Mutex
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond):
				kill(t, "customers")
				await(t, "the service is back, so that work goes on between two kills", func() bool {
					a, err := c.try(t, http.MethodGet, "/customers?limit=1", "", nil)
					return err == nil && a.Status == http.StatusOK
				})
			}
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range rounds(15) {
				tag := unique("event")
				body := fmt.Sprintf(`{"first_name":"E","email":"e@example.com","metadata":{"tag":%q}}`, tag)
				var a answer
				await(t, "a 201", func() bool {
					var err error
					a, err = c.try(t, http.MethodPost, "/customers", body, map[string]string{"Idempotency-Key": tag})
					return err == nil && a.Status == http.StatusCreated
				})
				var customer struct{ ID string }
				a.decode(t, &customer)
				mu.Lock()
				committed[customer.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(stop)
	killer.Wait()
	events := map[string]map[string]bool{} // customer → event ids
	await(t, fmt.Sprintf("an event for each of %d customers", len(committed)), func() bool {
		events = createdEvents(t)
		for id := range committed {
			if len(events[id]) == 0 {
				return false
			}
		}
		return true
	})
	for id := range committed {
		if len(events[id]) != 1 {
			t.Errorf("%s has %d different customer.created events", id, len(events[id]))
		}
	}
}

// createdEvents reads the whole customers topic.
func createdEvents(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	broker := started.env["KAFKA_BROKERS"]
	conn, err := kafka.Dial("tcp", broker)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	partitions, err := conn.ReadPartitions("holdfast.customers")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		readPartition(t, broker, p.ID, out)
	}
	return out
}

func readPartition(t *testing.T, broker string, partition int, out map[string]map[string]bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := kafka.DialLeader(ctx, "tcp", broker, "holdfast.customers", partition)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	first, last, err := conn.ReadOffsets()
	if err != nil {
		t.Fatal(err)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{broker}, Topic: "holdfast.customers", Partition: partition, MaxWait: 50 * time.Millisecond,
	})
	defer func() { _ = reader.Close() }()
	if err := reader.SetOffset(first); err != nil {
		t.Fatal(err)
	}
	for at := first; at < last; {
		m, err := reader.ReadMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at = m.Offset + 1
		e, err := outbox.Decode(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != "customer.created" {
			continue
		}
		if out[e.ObjectId] == nil {
			out[e.ObjectId] = map[string]bool{}
		}
		out[e.ObjectId][e.Id] = true
	}
}
