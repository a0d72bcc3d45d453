package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"
)

func TestEventsAreRetriedAndSurviveARestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "payment_intent.succeeded")
	events.mu.Lock()
	events.refuse = 2
	events.mu.Unlock()
	pi := s.pay(500, "usd", "pm_card_visa", stripe.PaymentIntentStatusSucceeded)
	until(t, "the third attempt", func() bool { return len(events.all()) == 1 })
	e := events.all()[0]
	got, err := s.Events.Get(e.ID, nil)
	if err != nil || got.Type != e.Type || got.APIVersion != "2023-10-16" || got.Request.ID == "" || got.Data.Object["id"] != pi.ID {
		t.Errorf("%+v %v", got, err)
	}
	s.control("POST", "events", map[string]any{"stopped": true}, nil)
	p := paying(700, "usd", "pm_card_visa")
	p.SetIdempotencyKey("its key")
	if _, err := s.PaymentIntents.New(p); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = startWith(t, s.config)
	until(t, "what the stopped process left", func() bool { return len(events.all()) == 2 })
	if e := events.all()[1]; e.Request.IdempotencyKey != "its key" || e.PendingWebhooks != 1 {
		t.Errorf("%+v %+v", e, e.Request)
	}
	if events.wrong > 0 {
		t.Errorf("%d wrong signatures", events.wrong)
	}
	it := s.WebhookEndpoints.List(nil)
	if !it.Next() || it.WebhookEndpoint().Secret != "" {
		t.Fatal("the list of endpoints has none, or shows the secret")
	}
	if _, err := s.WebhookEndpoints.Del(it.WebhookEndpoint().ID, nil); err != nil {
		t.Error(err)
	}
}

func TestEventModes(t *testing.T) {
	t.Parallel()
	s := start(t)
	events := s.receive(s.API, "payment_intent.created")
	create := func(mode map[string]any, n int) (ids []string) {
		s.control("POST", "events", mode, nil)
		for range n {
			pi, err := s.PaymentIntents.New(intent(500, "usd"))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, pi.ID)
		}
		return ids
	}
	came := func(ids []string) (list []string) {
		for _, e := range events.all() {
			if id, _ := e.Data.Object["id"].(string); slices.Contains(ids, id) {
				list = append(list, id)
			}
		}
		return list
	}
	ids := create(map[string]any{"account": demoAccount, "repeat": 2}, 3)
	until(t, "each event three times", func() bool { return len(came(ids)) == 9 })

	ids = create(map[string]any{"account": demoAccount, "shuffle": "200ms"}, 30)
	until(t, "all shuffled events", func() bool { return len(came(ids)) == 30 })
	if slices.Equal(came(ids), ids) {
		t.Error("shuffled events came in order")
	}
	ids = create(map[string]any{"account": demoAccount, "stopped": true, "age": "24h"}, 2)
	time.Sleep(100 * time.Millisecond) // nothing must arrive in the meantime
	if n := len(came(ids)); n > 0 {
		t.Errorf("%d events came while stopped", n)
	}
	s.control("POST", "events", map[string]any{"account": demoAccount}, nil)
	until(t, "the events that were held", func() bool { return len(came(ids)) == 2 })
	last := events.all()[len(events.all())-1]
	if age := time.Since(time.Unix(last.Created, 0)); age < 23*time.Hour {
		t.Errorf("created %v ago", age)
	}
}

// TestRolledSecrets checks that during the overlap, both the new and the old secret sign payloads.
func TestRolledSecrets(t *testing.T) {
	t.Parallel()
	s := start(t)
	var accepted atomic.Int64
	var secrets [2]string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, secret := range secrets {
			if _, err := webhook.ConstructEvent(body, r.Header.Get("Stripe-Signature"), secret); err == nil {
				accepted.Add(1)
			}
		}
	}))
	defer receiver.Close()
	e, err := s.WebhookEndpoints.New(&stripe.WebhookEndpointParams{URL: &receiver.URL, EnabledEvents: stripe.StringSlice([]string{"payment_intent.created"})})
	if err != nil {
		t.Fatal(err)
	}
	var rolled struct {
		Secret string `json:"secret"`
	}
	s.control("POST", "webhook_endpoints/"+e.ID+"/roll", map[string]string{"overlap": "1h"}, &rolled)
	secrets = [2]string{e.Secret, rolled.Secret}
	if _, err := s.PaymentIntents.New(intent(500, "usd")); err != nil {
		t.Fatal(err)
	}
	until(t, "two valid signatures", func() bool { return accepted.Load() == 2 })
}
