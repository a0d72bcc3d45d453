package kindtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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
	query(t, "identity", statement)
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
	o := overload{base, keys, 20 * limit}.run(t)
	end := time.Now()
	crowded.stop().none(t, "the neighbor of the noisy tenant")
	if o.Passed != limit || o.Refused < limit {
		t.Errorf("%d passed and %d were refused, of a limit of %d", o.Passed, o.Refused, limit)
	}
	t.Logf("%d passed within %v, %d refused, %d late", o.Passed, o.Full.Sub(begin).Round(time.Millisecond), o.Refused, o.Late)
	for _, part := range []struct {
		when     string
		of       *traffic
		from, to time.Time
	}{
		{"alone", alone, time.Time{}, end},
		{"with this load", crowded, begin, end},
		{"while the limit passes", crowded, begin, o.Full},
		{"while everything is refused", crowded, o.Full, end},
	} {
		t.Logf("the neighbor %s: p50 %v, p99 %v", part.when, part.of.percentile(50, part.from, part.to), part.of.percentile(99, part.from, part.to))
	}
}

// overload is the load of the noisy tenant: a number of requests with its keys in turn, within the first window. A separate process sends
// it, so that its client does not delay that of the neighbor.
type overload struct {
	Base     string
	Keys     []string
	Requests int64
}

// overloaded is what became of the requests of an overload: how many passed in the first window, were refused, and passed later, when the
// last one of the first window passed, and the first errors.
type overloaded struct {
	Passed, Refused, Late int64
	Full                  time.Time
	Errors                []string
}

const (
	overloadMode = "HOLDFAST_TEST_OVERLOAD" // if set, the test's program sends the overload that it reads, and prints what became of it
	maxErrors    = 10
)

// run sends the load from a process with the lowest priority, because in production it comes from other computers.
func (o overload) run(t *testing.T) (result overloaded) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "nice", "-n", "19", program)
	cmd.Env, cmd.Stdin, cmd.Stderr = append(os.Environ(), overloadMode+"=1"), bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		t.Fatalf("the noisy tenant: %v", err)
	}
	for _, e := range result.Errors {
		t.Errorf("the noisy tenant: %s", e)
	}
	return result
}

// serveOverload sends the overload of standard input, and prints what became of it.
func serveOverload(ctx context.Context) error {
	var o overload
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	base = o.Base
	return json.NewEncoder(os.Stdout).Encode(o.send(ctx))
}

func (o overload) send(ctx context.Context) (result overloaded) {
	var mu sync.Mutex
	next, ends := make(chan string), time.Now().Add(59*time.Second)
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for secret := range next {
				c := readTenant()
				c.key = secret
				status, err := fetchStatus(ctx, client, c)
				mu.Lock()
				switch now := time.Now(); {
				case err != nil || status != http.StatusOK && status != http.StatusTooManyRequests:
					if len(result.Errors) < maxErrors {
						result.Errors = append(result.Errors, fmt.Sprint(status, " ", err))
					}
				case status == http.StatusTooManyRequests:
					result.Refused++
				case now.Before(ends):
					result.Passed, result.Full = result.Passed+1, now
				default:
					result.Late++
				}
				mu.Unlock()
			}
		})
	}
	due := time.NewTicker(time.Minute / time.Duration(o.Requests))
	defer due.Stop()
	for i := range o.Requests {
		if time.Now().After(ends) {
			break
		}
		next <- o.Keys[i%int64(len(o.Keys))]
		<-due.C
	}
	close(next)
	senders.Wait()
	return result
}
