package peerstest

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// Refund is a refund that the gateway created.
type Refund struct {
	domain.GatewayRefund

	Intent domain.GatewayID
	Minor  int64
	Reason string
}

// CreateRefund implements app.Gateway. It creates one refund per key, and never for more than is left.
func (g *Gateway) CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error) {
	var created domain.GatewayRefund
	_, err := g.call(ctx, "refund", func() (domain.Snapshot, error) {
		key := a.Account + part.CallKey()
		if id, ok := g.keys[key]; ok {
			created = g.refund(string(id)).GatewayRefund
			return domain.Snapshot{}, nil
		}
		s, err := g.found(part.Intent)
		if err != nil {
			return s, err
		}
		if g.Disputed[string(part.Intent)] {
			return s, refused("charge_disputed", "The charge has a dispute.")
		}
		if s.Refunded+part.Minor > s.Received {
			return s, refused("charge_already_refunded", "More than is left.")
		}
		s.Refunded += part.Minor
		created = domain.GatewayRefund{ID: fmt.Sprintf("re_%s_%d", part.ID, len(g.refunds)+1), Status: domain.RefundSucceeded, Row: part.ID.String()}
		if g.RefundStatus != "" {
			created.Status = g.RefundStatus
		}
		g.keys[key] = domain.GatewayID(created.ID)
		g.refunds = append(g.refunds, &Refund{GatewayRefund: created, Intent: part.Intent, Minor: part.Minor, Reason: r.Reason})
		return s, g.put(s)
	})
	if err != nil {
		return domain.GatewayRefund{}, err
	}
	return created, nil
}

// ReadRefund implements app.Gateway.
func (g *Gateway) ReadRefund(ctx context.Context, _ domain.Account, id string) (domain.GatewayRefund, error) {
	var got domain.GatewayRefund
	_, err := g.call(ctx, "readRefund", func() (domain.Snapshot, error) {
		r := g.refund(id)
		if r == nil {
			return domain.Snapshot{}, refused("resource_missing", "No such refund.")
		}
		got = r.GatewayRefund
		return domain.Snapshot{}, nil
	})
	return got, err
}

// FindRefund implements app.Gateway.
func (g *Gateway) FindRefund(ctx context.Context, _ domain.Account, part domain.Allocation, _ time.Time) (*domain.GatewayRefund, error) {
	var found *domain.GatewayRefund
	_, err := g.call(ctx, "findRefund", func() (domain.Snapshot, error) {
		for _, r := range g.refunds {
			if r.Intent == part.Intent && r.Row == part.ID.String() {
				out := r.GatewayRefund
				found = &out
			}
		}
		return domain.Snapshot{}, nil
	})
	return found, err
}

// EndRefund ends a refund as the bank or the operator would. A failed or canceled refund releases its amount.
func (g *Gateway) EndRefund(id string, status domain.RefundStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.refund(id)
	if r.Status.Holds() && !status.Holds() {
		g.intents[r.Intent].Refunded -= r.Minor
	}
	r.Status = status
	if status == domain.RefundFailed {
		r.Failure = &domain.Failure{Code: "expired_or_canceled_card", Message: "The card has expired."}
	}
}

// Dashboard creates a refund as the operator would in the gateway's dashboard.
func (g *Gateway) Dashboard(intent string, minor int64) (id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id = fmt.Sprintf("re_dashboard_%d", len(g.refunds)+1)
	g.intents[domain.GatewayID(intent)].Refunded += minor
	g.refunds = append(g.refunds, &Refund{
		GatewayRefund: domain.GatewayRefund{ID: id, Status: domain.RefundSucceeded}, Intent: domain.GatewayID(intent), Minor: minor,
	})
	return id
}

// Refunds returns the created refunds in order.
func (g *Gateway) Refunds() (list []Refund) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.refunds {
		list = append(list, *r)
	}
	return list
}

func (g *Gateway) refund(id string) *Refund {
	for _, r := range g.refunds {
		if r.ID == id {
			return r
		}
	}
	return nil
}
