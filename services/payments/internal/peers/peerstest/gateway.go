// Package peerstest contains fakes of the payment gateway and of the other services. The fakes store state, and tests can make them
// fail.
package peerstest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// Gateway is a fake of Stripe. It creates one intent per key and stores its responses.
type Gateway struct {
	// Before runs before a call takes effect, and After runs afterwards. Each can return the error that the caller sees.
	Before, After func(ctx context.Context, call string) error
	// RefundStatus is the state of new refunds; "": succeeded.
	RefundStatus domain.RefundStatus
	// Disputed contains the intents for which no refund is created.
	Disputed map[string]bool

	mu      sync.Mutex
	created int
	keys    map[string]domain.GatewayID // by idempotency key
	intents map[domain.GatewayID]*domain.Snapshot
	times   map[domain.GatewayID]time.Time
	refunds []*Refund
}

func (g *Gateway) call(ctx context.Context, name string, effect func() (domain.Snapshot, error)) (domain.Snapshot, error) {
	if g.Before != nil {
		if err := g.Before(ctx, name); err != nil {
			return domain.Snapshot{}, err
		}
	}
	g.mu.Lock()
	out, err := effect()
	g.mu.Unlock()
	if err == nil && g.After != nil {
		err = g.After(ctx, name)
	}
	return out, err
}

// Account implements app.Gateway. A key belongs to the account that it names.
func (g *Gateway) Account(_ context.Context, key domain.Secret) (id, country string, err error) {
	if key == "sk_test_wrong" {
		return "", "", refused("api_key_invalid", "Invalid API key.")
	}
	return "acct_1", "US", nil
}

// Create implements app.Gateway.
func (g *Gateway) Create(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	return g.call(ctx, "create", func() (domain.Snapshot, error) {
		if g.keys == nil {
			g.keys, g.intents, g.times = map[string]domain.GatewayID{}, map[domain.GatewayID]*domain.Snapshot{}, map[domain.GatewayID]time.Time{}
		}
		key := a.Account + domain.CallKey(p.ID, "create", p.Call.Attempt)
		if id, ok := g.keys[key]; ok {
			return *g.intents[id], nil
		}
		if p.Amount.Minor < 50 {
			e := refused("amount_too_small", "Amount must be at least 50 cents.")
			e.Param = "amount"
			return domain.Snapshot{}, e
		}
		g.created++
		id := domain.GatewayID(fmt.Sprintf("pi_%s_%d", p.ID, g.created))
		g.keys[key], g.times[id] = id, time.Now()
		g.intents[id] = &domain.Snapshot{
			ID: id, Status: domain.RequiresPaymentMethod, Amount: p.Amount.Minor, ClientSecret: domain.Secret(id) + "_secret_1", Row: p.ID.String(),
		}
		return *g.intents[id], nil
	})
}

// Read implements app.Gateway.
func (g *Gateway) Read(ctx context.Context, _ domain.Account, p domain.Intent) (domain.Snapshot, error) {
	return g.call(ctx, "read", func() (domain.Snapshot, error) { return g.found(p.GatewayID) })
}

// Find implements app.Gateway.
func (g *Gateway) Find(ctx context.Context, _ domain.Account, row domain.IntentID, since time.Time) (*domain.Snapshot, error) {
	var found *domain.Snapshot
	_, err := g.call(ctx, "find", func() (domain.Snapshot, error) {
		for id, s := range g.intents {
			if s.Row == row.String() && !g.times[id].Before(since.Add(-time.Minute)) {
				out := *s
				found = &out
			}
		}
		return domain.Snapshot{}, nil
	})
	return found, err
}

// Cancel implements app.Gateway.
func (g *Gateway) Cancel(ctx context.Context, _ domain.Account, p domain.Intent) (domain.Snapshot, error) {
	return g.call(ctx, "cancel", func() (domain.Snapshot, error) {
		s, err := g.found(p.GatewayID)
		if err != nil {
			return s, err
		}
		if s.Status.Check(domain.Cancel) != nil {
			return s, refused("payment_intent_unexpected_state", "The intent cannot be canceled.")
		}
		s.Status, s.Capturable = domain.Canceled, 0
		return s, g.put(s)
	})
}

// Capture implements app.Gateway.
func (g *Gateway) Capture(ctx context.Context, _ domain.Account, p domain.Intent, minor int64) (domain.Snapshot, error) {
	return g.call(ctx, "capture", func() (domain.Snapshot, error) {
		s, err := g.found(p.GatewayID)
		if err != nil {
			return s, err
		}
		if s.Status.Check(domain.Capture) != nil {
			return s, refused("payment_intent_unexpected_state", "The intent cannot be captured.")
		}
		s.Status, s.Capturable, s.Received = domain.Succeeded, 0, minor
		return s, g.put(s)
	})
}

// Change changes an intent as the payer, the bank or the operator would.
func (g *Gateway) Change(id string, change func(s *domain.Snapshot)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.intents[domain.GatewayID(id)])
}

// Created returns how many intents exist.
func (g *Gateway) Created() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.created
}

// Forget makes the gateway forget all idempotency keys, as it does after a day.
func (g *Gateway) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.keys)
}

func (g *Gateway) found(id domain.GatewayID) (domain.Snapshot, error) {
	if s := g.intents[id]; s != nil {
		return *s, nil
	}
	return domain.Snapshot{}, refused("resource_missing", "No such payment_intent.")
}

func (g *Gateway) put(s domain.Snapshot) error {
	g.intents[s.ID] = &s
	return nil
}

func refused(code, message string) *domain.RefusedError {
	return &domain.RefusedError{Failure: domain.Failure{Code: code, Message: message}}
}
