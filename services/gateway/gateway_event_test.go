package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
)

// gatewayEvents receives the events of accounts at payment gateways like payments, and records them.
type gatewayEvents struct {
	mu   sync.Mutex
	came []string // account, signature and body
}

func (w *world) gatewayEvents() *gatewayEvents {
	k := &gatewayEvents{}
	w.service.handle = func(out http.ResponseWriter, r *http.Request) bool {
		account, ok := strings.CutPrefix(r.URL.Path, "/internal/v1/gateway-events/")
		if !ok {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		k.mu.Lock()
		k.came = append(k.came, fmt.Sprintf("%s %s %d", account, r.Header.Get("Stripe-Signature"), len(body)))
		k.mu.Unlock()
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"received":true}`)
		return true
	}
	return k
}

func (k *gatewayEvents) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.came)
}

// deliver sends an event of an account from an address, like a payment gateway. The path is not in the contract.
func (g *gateway) deliver(t *testing.T, account, body, address string) (status int, code, retry string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+eventsOf(account), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Stripe-Signature", "t=1,v1=x")
	req.Header.Set("X-Forwarded-For", address)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer func() { _ = res.Body.Close() }()
	var refusal struct{ Error struct{ Code string } }
	if err := json.NewDecoder(res.Body).Decode(&refusal); err != nil {
		t.Error(err)
	}
	return res.StatusCode, refusal.Error.Code, res.Header.Get("Retry-After")
}

func eventsOf(account string) string { return "/gateway/stripe/" + account }

func anAccount() string { return "ga" + ids.New[ids.RequestPrefix]().String()[3:] }

// An event of a payment gateway is forwarded with its bytes and its signature, without a credential. A body that is too long is not
// forwarded.
func TestGatewayEvents(t *testing.T) {
	t.Parallel()
	w, account := newWorld(t), anAccount()
	k := w.gatewayEvents()
	g := w.start(t)
	if status, code, _ := g.deliver(t, account, `{"id": "evt_1"}`, "192.0.2.1"); status != 200 {
		t.Errorf("%d %s", status, code)
	}
	if status, code, _ := g.deliver(t, account, strings.Repeat("x", 1<<20+1), "192.0.2.1"); status != 413 || code != "request_too_large" {
		t.Errorf("%d %s", status, code)
	}
	if n := w.identity.lookupCount(); n != 0 {
		t.Errorf("identity was called %d times", n)
	}
	if len(k.came) != 1 || k.came[0] != account+" t=1,v1=x 15" {
		t.Errorf("%q", k.came)
	}
	if from := w.service.caller; !from.Tenant.IsZero() || from.Credential != "svc:gateway" || len(from.Scopes) > 0 {
		t.Errorf("the service was called as %+v", from)
	}
}

// The events of an account from one address are limited across all gateways. Those of another account or from another address are
// accepted.
func TestTheRateOfGatewayEvents(t *testing.T) {
	t.Parallel()
	w, account, other := newWorld(t), anAccount(), anAccount()
	k := w.gatewayEvents()
	bounded := func(c *Config) { c.EventRateLimit, c.TrustedProxyHops = 20, 1 }
	gates := []*gateway{w.start(t, bounded), w.start(t, bounded)}
	for _, g := range gates { // the account is known after the first accepted event
		if status, _, _ := g.deliver(t, account, `{}`, "192.0.2.1"); status != 200 {
			t.Errorf("%d", status)
		}
	}
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			switch status, code, retry := gates[n%2].deliver(t, account, `{}`, "192.0.2.1"); {
			case status == 200:
				passed.Add(1)
			case status == 429 && code == "rate_limited":
				refused.Add(1)
				if s, err := strconv.Atoi(retry); err != nil || s < 1 || s > 120 {
					t.Errorf("Retry-After %q", retry)
				}
			default:
				t.Errorf("%d %s", status, code)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 18 || refused.Load() != 32 || k.count() != 20 {
		t.Errorf("%d passed, %d refused, %d were forwarded", passed.Load(), refused.Load(), k.count())
	}
	if status, _, _ := gates[0].deliver(t, other, `{}`, "192.0.2.1"); status != 200 {
		t.Errorf("another account: %d", status)
	}
	if status, _, _ := gates[1].deliver(t, account, `{}`, "192.0.2.2"); status != 200 {
		t.Errorf("another address: %d", status)
	}
}

// A request that waits for a payment gateway gets more time than others, so that payments responds before the gateway gives up.
func TestPaymentsHaveMoreTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service.handle = func(out http.ResponseWriter, r *http.Request) bool {
		time.Sleep(3 * time.Second)
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(out, `{"error":{"type":"invalid_request_error","code":"gateway_not_configured","message":"No.",`+
			`"doc_url":"https://booking.test/docs/errors#gateway_not_configured","request_id":%q}}`, r.Header.Get("X-Request-Id"))
		return true
	}
	g := w.start(t, func(c *Config) { c.UpstreamTimeout, c.GatewayTimeout = time.Second, 20*time.Second }) // a loaded machine connects within a second
	key := bearer(w.identity.newKey("payments:read", "read:customers"))
	want(t, g.send(t, "GET", "/api/v1/payment-intents/pi_1", "", key), 409, "gateway_not_configured")
	want(t, g.send(t, "GET", oneCu, "", key), 504, "upstream_timeout")
}
