package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// intents counts the intents of the test account.
func (s *standIn) intents() int {
	s.t.Helper()
	var all struct {
		Intents []any `json:"payment_intents"`
	}
	s.control("GET", "accounts/"+demoAccount+"/snapshot", nil, &all)
	return len(all.Intents)
}

// TestFaults checks that each fault behaves as its name implies, with or without the effect, and that the key stores the same
// response as at Stripe.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action   string
		status   int  // status of the faulty response; 0: no response
		effect   bool // the intent exists afterwards
		again    int  // status of the same request with the same key
		replayed bool
	}{
		{"rate_limit", 429, false, 200, false},
		{"refuse", 400, false, 400, true},
		{"close_after", 0, true, 200, true},
		{"hold_after", 0, true, 200, true},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.control("POST", "faults", map[string]any{
				"action": c.action, "method": "POST", "path": "/v1/payment_intents", "account": demoAccount, "times": 1, "code": "balance_insufficient",
			}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/payment_intents", strings.NewReader("amount=500&currency=usd"))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth("sk_test_demo", "")
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Idempotency-Key", "k")
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err == nil) != (c.status != 0) || err == nil && resp.StatusCode != c.status {
				t.Errorf("%v %v, want %d", resp, err, c.status)
			}
			if n := s.intents(); n != map[bool]int{true: 1}[c.effect] {
				t.Errorf("%d intents, effect %v", n, c.effect)
			}
			status, header, body := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd", "Idempotency-Key", "k")
			if status != c.again || (header.Get("Idempotent-Replayed") == "true") != c.replayed {
				t.Errorf("again: %d %v %v", status, header, body)
			}
		})
	}
}

func TestEveryThirdResponseIsLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	var rule struct{ ID int }
	s.control("POST", "faults", map[string]any{"action": "close_after", "method": "POST", "every": 3}, &rule)
	create := func() (lost int) {
		for range 9 {
			if _, err := s.PaymentIntents.New(intent(500, "usd")); err != nil {
				lost++
			}
		}
		return lost
	}
	if lost, n := create(), s.intents(); lost != 3 || n != 9 {
		t.Errorf("%d responses lost of %d intents", lost, n)
	}
	s.control("DELETE", fmt.Sprint("faults/", rule.ID), nil, nil)
	if lost := create(); lost != 0 {
		t.Errorf("%d responses lost without a rule", lost)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.control("POST", "latency", map[string]string{"latency": "200ms"}, nil)
	begin := time.Now()
	if status, _, _ := s.send("GET", "sk_test_demo", "/v1/account", ""); status != 200 || time.Since(begin) < 200*time.Millisecond {
		t.Errorf("one request: %d after %v", status, time.Since(begin))
	}
	begin = time.Now()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			if status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", "amount=500&currency=usd"); status != 200 {
				t.Errorf("status %d", status)
			}
		})
	}
	all.Wait()
	if took := time.Since(begin); took < 200*time.Millisecond || took > 20*time.Second {
		t.Errorf("500 requests at once took %v", took)
	}
}

func TestControlNeedsItsToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, header := range []string{"", "Bearer sk_test_demo", "Bearer "} {
		if status, h, _ := s.send("GET", "", "/_control/accounts/"+demoAccount+"/snapshot", "", "Authorization", header); status != 401 || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %d %v", header, status, h)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	form := "amount=500&currency=usd&description="
	if status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", form+strings.Repeat("x", 1<<20)); status != 413 {
		t.Errorf("a body above 1 MiB: %d", status)
	}
	if status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", form+strings.Repeat("x", 1<<19)); status != 200 {
		t.Errorf("a body of half of it: %d", status)
	}
	if status, _, _ := s.post("sk_test_demo", "/v1/payment_intents", `{"amount":1}`, "Content-Type", "application/json"); status != 400 {
		t.Errorf("JSON: %d", status)
	}
}

// TestAccountsAreIsolated checks that accounts share no data.
func TestAccountsAreIsolated(t *testing.T) {
	t.Parallel()
	s := start(t)
	var other struct {
		ID   string `json:"id"`
		Keys struct {
			Secret string `json:"test_secret"`
			Live   string `json:"live_secret"`
		} `json:"keys"`
	}
	s.control("POST", "accounts", map[string]string{"country": "DE", "default_currency": "eur"}, &other)
	mine := s.pay(500, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	events := s.receive(s.with(other.Keys.Secret))
	for _, key := range []string{other.Keys.Secret, other.Keys.Live, "sk_live_demo"} {
		api := s.with(key)
		_, err := api.PaymentIntents.Get(mine.ID, nil)
		refused(t, err, 404, "resource_missing")
		_, err = api.Refunds.New(&stripe.RefundParams{PaymentIntent: &mine.ID})
		refused(t, err, 404, "resource_missing")
		for name, any := range map[string]bool{"intents": api.PaymentIntents.List(nil).Next(), "charges": api.Charges.List(nil).Next(), "events": api.Events.List(nil).Next()} {
			if any {
				t.Errorf("%s... lists another's %s", key[:8], name)
			}
		}
	}
	live, err := s.with("sk_live_demo").PaymentIntents.New(intent(500, "usd"))
	if err != nil || !live.Livemode {
		t.Errorf("live: %+v %v", live, err)
	}
	s.pay(500, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	if _, err := s.with(other.Keys.Secret).PaymentIntents.New(intent(500, "eur")); err != nil {
		t.Fatal(err)
	}
	until(t, "its own event", func() bool { return len(events.all()) > 0 })
	for _, e := range events.all() {
		if e.Type != "payment_intent.created" || e.Data.Object["currency"] != "eur" {
			t.Errorf("another account's event: %s", e.Type)
		}
	}
}
