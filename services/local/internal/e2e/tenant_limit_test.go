package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// tenantWithKeys creates a tenant with API keys for test mode, which can read the tenant.
func tenantWithKeys(t *testing.T, slug string, n int) (id string, keys []string) {
	t.Helper()
	var created struct{ ID string }
	shared.identity(t, &created, "tenant", "create", "--slug", slug+strings.ToLower(ids.New[ids.RequestPrefix]().String()[20:]),
		"--name", "Limits", "--timezone", "UTC", "--currency", "EUR", "--json")
	tenant, err := ids.Parse[ids.TenantPrefix](created.ID)
	if err != nil {
		t.Fatal(err)
	}
	db := shared.database(t, "identity")
	for range n {
		key := apikey.New(caller.Test)
		hash := apikey.Hash(key)
		execute(t, db, `insert into api_keys (tenant_id, livemode, id, name, hash, scopes, version, created_at)
			values ($1, false, gen_random_uuid(), 'limits', $2, '{read:bookings}', 1, now())`, tenant.UUID(), hash[:])
		keys = append(keys, key)
	}
	return created.ID, keys
}

// statusOf sends GET /tenant with a key to the gateway at address.
func statusOf(t *testing.T, address, key string) (status int, limit string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/v1/tenant", nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := httpClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("RateLimit")
}

// TestTheLimitOfATenant sends 20 times the limit of a tenant with many keys through three gateway processes. Exactly the limit passes in
// the first window, and no request of another tenant is refused.
func TestTheLimitOfATenant(t *testing.T) {
	if shared.cluster != nil {
		t.Skip("it needs processes with their own settings")
	}
	limit, excess := scaled(300, 3000), 20
	noisy, keys := tenantWithKeys(t, "noisy", scaled(100, 1000))
	_, quiet := tenantWithKeys(t, "quiet", 1)
	shared.identity(t, nil, "tenant", "limits", "--tenant", noisy, "--requests-per-minute", fmt.Sprint(limit), "--json")
	var gates []*replica
	for range 3 {
		// On a busy machine, a gateway must not take a late response of Redis for a failure, because it would count alone.
		g := newReplica(t, "gateway", filepath.Join(shared.root, "bin", "gateway"), "REDIS_TIMEOUT=10s")
		g.start(t, shared)
		t.Cleanup(g.stop)
		gates = append(gates, g)
	}
	stop := make(chan struct{})
	var neighbor sync.WaitGroup
	served := 0
	neighbor.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if status, _ := statusOf(t, gates[i%3].address, quiet[0]); status != http.StatusOK {
				t.Errorf("the neighbor got %d", status)
			}
			served++
		}
	})
	var passed, refused, late, next atomic.Int64
	ends := time.Now().Add(59 * time.Second) // before the first window
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= excess*limit || time.Now().After(ends) {
					return
				}
				status, header := statusOf(t, gates[i%3].address, keys[i%len(keys)])
				switch {
				case status == http.StatusOK && time.Now().Before(ends):
					passed.Add(1)
				case status == http.StatusOK:
					late.Add(1)
				case status == http.StatusTooManyRequests && strings.HasPrefix(header, `"tenant";r=0;t=`):
					refused.Add(1)
				default:
					t.Errorf("status %d, RateLimit %s", status, header)
				}
			}
		})
	}
	senders.Wait()
	close(stop)
	neighbor.Wait()
	if passed.Load() != int64(limit) || refused.Load() < int64(limit) || served == 0 {
		t.Errorf("%d passed, %d refused, %d late, of a limit of %d; the neighbor sent %d", passed.Load(), refused.Load(), late.Load(), limit, served)
	}
	t.Logf("%d passed, %d refused; the neighbor sent %d", passed.Load(), refused.Load(), served)
	shared.identity(t, nil, "tenant", "limits", "--tenant", noisy, "--reset", "--json")
	for _, g := range gates {
		if status, _ := statusOf(t, g.address, keys[0]); status != http.StatusOK {
			t.Errorf("after the limit was reset: %d", status)
		}
	}
}
