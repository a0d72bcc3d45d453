package kindtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

const (
	tenantKeys   = 1000
	tenantLimit  = 3000 // requests in any 60 seconds
	noisyRate    = 20 * tenantLimit / 60
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
// window, and no request of another tenant is refused. It prints the other tenant's latency without and with this load.
func TestNoisyTenant(t *testing.T) {
	slug, keys := tenantWithKeys(t)
	identity(t, "tenant", "limits", "--tenant", slug, "--requests-per-minute", fmt.Sprint(tenantLimit))
	// On a busy machine, a gateway must not take a late response of Redis for a failure, because it would count alone.
	if err := upgrade(t, "services.gateway.replicas=3", "services.gateway.env.REDIS_TIMEOUT=2s"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := upgrade(t, "services.gateway.replicas=2", "services.gateway.env.REDIS_TIMEOUT=15ms"); err != nil {
			t.Error(err)
		}
	})
	settled(t, "gateway")
	quiet := key(t)
	alone := neighborWhile(t, quiet, func() { time.Sleep(20 * time.Second) })
	var passed, refused, late atomic.Int64
	next, ends := make(chan string), time.Now().Add(59*time.Second) // before the first window ends
	crowded := neighborWhile(t, quiet, func() {
		var senders sync.WaitGroup
		for range 64 {
			senders.Go(func() {
				for secret := range next {
					status, err := fetchStatus(t.Context(), client, call{method: http.MethodGet, path: "/tenant", key: secret})
					switch {
					case err != nil || status != http.StatusOK && status != http.StatusTooManyRequests:
						t.Errorf("the noisy tenant: %d %v", status, err)
					case status == http.StatusTooManyRequests:
						refused.Add(1)
					case time.Now().Before(ends):
						passed.Add(1)
					default:
						late.Add(1)
					}
				}
			})
		}
		due := time.NewTicker(time.Second / noisyRate)
		defer due.Stop()
		for i := 0; i < 20*tenantLimit && time.Now().Before(ends); i++ {
			next <- keys[i%len(keys)]
			<-due.C
		}
		close(next)
		senders.Wait()
	})
	if passed.Load() != tenantLimit || refused.Load() < tenantLimit {
		t.Errorf("%d passed and %d were refused, of a limit of %d", passed.Load(), refused.Load(), tenantLimit)
	}
	t.Logf("%d passed, %d refused, %d late; the neighbor's p50 and p99 are %v and %v alone, %v and %v with this load", passed.Load(), refused.Load(), late.Load(),
		alone(50), alone(99), crowded(50), crowded(99))
}

// neighborWhile sends requests of another tenant while run runs, and returns a function that returns a percentile of their durations.
// Each must succeed.
func neighborWhile(t *testing.T, secret string, run func()) func(percent int) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		defer all.Wait()
		due := time.NewTicker(time.Second / neighborRate)
		defer due.Stop()
		for {
			select {
			case <-quit:
				return
			case <-due.C:
				all.Go(func() {
					began := time.Now()
					status, err := fetchStatus(t.Context(), client, call{method: http.MethodGet, path: "/tenant", key: secret})
					if err != nil || status != http.StatusOK {
						t.Errorf("the neighbor: %d %v", status, err)
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(began))
				})
			}
		}
	}()
	run()
	close(quit)
	<-done
	slices.Sort(took)
	return func(percent int) time.Duration {
		return took[min(len(took)*percent/100, len(took)-1)].Round(100 * time.Microsecond)
	}
}
