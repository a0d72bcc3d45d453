package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
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
	list := s.Events.List(&stripe.EventListParams{Types: stripe.StringSlice([]string{"payment_intent.succeeded"})})
	if got := list.Next(); !got || list.Event().ID != e.ID || list.Event().APIVersion != "2023-10-16" || list.Event().Request.ID == "" || list.Event().Data.Object["id"] != pi.ID {
		t.Errorf("%+v %v", list.Current(), list.Err())
	}
	s.control("POST", "events", map[string]any{"stopped": true}, nil)
	pi, err := s.PaymentIntents.New(intent(700, "usd"))
	if err != nil {
		t.Fatal(err)
	}
	p := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa"), ReturnURL: stripe.String("https://shop.example")}
	p.SetIdempotencyKey("its key")
	if _, err := s.PaymentIntents.Confirm(pi.ID, p); err != nil {
		t.Fatal(err)
	}
	s.stop()
	startWith(t, s.config)
	until(t, "what the stopped process left", func() bool { return len(events.all()) == 2 })
	if e := events.all()[1]; e.Request.IdempotencyKey != "its key" || e.PendingWebhooks != 1 {
		t.Errorf("%+v %+v", e, e.Request)
	}
	if events.wrong > 0 {
		t.Errorf("%d wrong signatures", events.wrong)
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
