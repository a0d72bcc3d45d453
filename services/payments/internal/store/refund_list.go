package store

import (
	"context"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// RefundFilter selects refunds of a list. Nil and empty fields select all.
type RefundFilter struct {
	Status   []domain.RefundStatus
	Booking  *domain.BookingID
	Metadata map[string]string // each pair
	Intent   domain.GatewayID
	Customer *domain.CustomerID // customer of a payment intent that the refund covers, or of its booking
}

// Refunds reads one page of the refunds that clients can see.
func Refunds(ctx context.Context, q pg.Q, f RefundFilter, r page.Request) (page.Rows[domain.Refund], error) {
	return page.Search(ctx, q, r, page.List[domain.Refund]{
		Alias: "r", Scan: refunds.Scan, Conditions: page.MetadataConditions(refundMetadata, "r", f.Metadata),
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return page.Union(r, page.OneOf("r.status", f.Status), func(w *page.Where) (string, []any) { return refundsOf(w, f, r, narrow) })
		},
	})
}

func refundsOf(w *page.Where, f RefundFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`r.tenant_id = @tenant and r.livemode = @live and r.shown`)
	page.Equal(w, `r.booking_id = ?`, f.Booking)
	if f.Intent != "" {
		w.Add(`r.id in (select i.refund_id from refund_allocations i where i.tenant_id = @tenant and i.livemode = @live
			and i.intent_id = (select p.id from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = ?))`, f.Intent)
	}
	if f.Customer != nil {
		w.Add(`r.id in (select i.refund_id from refund_allocations i join payment_intents p on p.tenant_id = i.tenant_id and p.livemode = i.livemode
				and p.id = i.intent_id
			where i.tenant_id = @tenant and i.livemode = @live and p.tenant_id = @tenant and p.livemode = @live and p.customer_id = ?
			union all select m.id from refunds m where m.tenant_id = @tenant and m.livemode = @live and m.customer_id = ?)`, *f.Customer, *f.Customer)
	}
	narrow(w)
	tail, args := w.Page(r, "r")
	return refunds.Select + tail, args
}
