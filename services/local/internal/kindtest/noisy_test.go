package kindtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

const (
	tenantKeys   = 1000
	neighborRate = 30 // requests per second
)

// tenantWithKeys creates a tenant with tenantKeys API keys, which it writes to the database, because the command creates one at a time.
func tenantWithKeys(t *testing.T) (slug string, keys []string) {
	t.Helper()
	slug = fmt.Sprintf("noisy-%d", time.Now().UnixNano())
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(identity(t, "tenant", "create", "--slug", slug, "--name", "Noisy", "--timezone", "UTC", "--currency", "EUR", "--json")), &created); err != nil {
		t.Fatal(err)
	}
	tenant, err := ids.Parse[ids.TenantPrefix](created.ID)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for range tenantKeys {
		key := apikey.New(caller.Test)
		hash := apikey.Hash(key)
		keys = append(keys, key)
		rows = append(rows, fmt.Sprintf(`('%x', false, gen_random_uuid(), 'noisy', '\x%x', '{read:bookings}', 1, now())`, tenant.UUID(), hash))
	}
	statement := "insert into api_keys (tenant_id, livemode, id, name, hash, scopes, version, created_at) values " + strings.Join(rows, ",")
	if _, err := lab.Kubectl(t.Context(), []byte(statement), "exec", "-i", "statefulset/holdfast-postgres", "--",
		"sh", "-c", `PGPASSWORD=$(cat /secrets/postgres-password) /usr/lib/postgresql/15/bin/psql -qX --set=ON_ERROR_STOP=1 -h 127.0.0.1 -U postgres holdfast_identity`); err != nil {
		t.Fatal(err)
	}
	return slug, keys
}

// TestNoisyTenant sends 20 times the limit of a tenant with many keys through three gateways. Exactly the limit passes in the first
// window, and no request of another tenant is refused. It prints the other tenant's latency without and with this load. The default limit
// fills a small machine, which also runs the cluster and the clients. A lower one shows the latency next to a tenant over its limit.
func TestNoisyTenant(t *testing.T) {
	// Linux gives pods processors in proportion to their requests, and those of values-dev are a fraction of what the node's own processes get.
	if err := upgrade(t, "services.gateway.replicas=3", "services.gateway.resources.requests.cpu=500m", "services.identity.resources.requests.cpu=500m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := upgrade(t, "services.gateway.replicas=2", "services.gateway.resources.requests.cpu=50m", "services.identity.resources.requests.cpu=25m"); err != nil {
			t.Error(err)
		}
	})
	settled(t, "gateway")
	for _, limit := range []int64{3000, 600} { // requests in any 60 seconds
		t.Run(fmt.Sprint(limit), func(t *testing.T) { noisyTenant(t, limit) })
	}
}

func noisyTenant(t *testing.T, limit int64) {
	slug, keys := tenantWithKeys(t)
	identity(t, "tenant", "limits", "--tenant", slug, "--requests-per-minute", fmt.Sprint(limit))
	quiet := key(t)
	neighbor := func() *traffic { return send(t, neighborRate, quiet, readTenant) }
	alone := neighbor()
	time.Sleep(40 * time.Second)
	alone.stop().none(t, "the neighbor alone")

	crowded, begin := neighbor(), time.Now()
	o := overload(t, keys, 20*limit)
	end := time.Now()
	crowded.stop().none(t, "the neighbor of the noisy tenant")
	if o.passed != limit || o.refused < limit {
		t.Errorf("%d passed and %d were refused, of a limit of %d", o.passed, o.refused, limit)
	}
	t.Logf("%d passed within %v, %d refused, %d late", o.passed, o.full.Sub(begin).Round(time.Millisecond), o.refused, o.late)
	for _, part := range []struct {
		when     string
		of       *traffic
		from, to time.Time
	}{
		{"alone", alone, time.Time{}, end},
		{"with this load", crowded, begin, end},
		{"while the limit passes", crowded, begin, o.full},
		{"while everything is refused", crowded, o.full, end},
	} {
		t.Logf("the neighbor %s: p50 %v, p99 %v", part.when, part.of.percentile(50, part.from, part.to), part.of.percentile(99, part.from, part.to))
	}
}

// overloaded is what became of the requests of a noisy tenant: how many passed in the first window, were refused, and passed later, and
// when the last one of the first window passed.
type overloaded struct {
	passed, refused, late int64
	full                  time.Time
}

// overload sends a number of requests with the keys in turn, within the first window.
func overload(t *testing.T, keys []string, requests int64) (o overloaded) {
	t.Helper()
	var mu sync.Mutex
	next, ends := make(chan string), time.Now().Add(59*time.Second)
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for secret := range next {
				c := readTenant()
				c.key = secret
				status, err := fetchStatus(t.Context(), client, c)
				mu.Lock()
				switch now := time.Now(); {
				case err != nil || status != http.StatusOK && status != http.StatusTooManyRequests:
					t.Errorf("the noisy tenant: %d %v", status, err)
				case status == http.StatusTooManyRequests:
					o.refused++
				case now.Before(ends):
					o.passed, o.full = o.passed+1, now
				default:
					o.late++
				}
				mu.Unlock()
			}
		})
	}
	due := time.NewTicker(time.Minute / time.Duration(requests))
	defer due.Stop()
	for i := range requests {
		if time.Now().After(ends) {
			break
		}
		next <- keys[i%int64(len(keys))]
		<-due.C
	}
	close(next)
	senders.Wait()
	return o
}
