package store

import (
	"context"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// IntentFilter selects intents of a list. Nil and empty fields select all.
type IntentFilter struct {
	Status   []domain.Status
	Booking  *domain.BookingID
	Customer *domain.CustomerID
	Metadata map[string]string // each pair
}

// Intents reads one page of the intents that the gateway knows.
func Intents(ctx context.Context, q pg.Q, f IntentFilter, r page.Request) (page.Rows[domain.Intent], error) {
	return page.Search(ctx, q, r, page.List[domain.Intent]{
		Alias: "p", Scan: intents.Scan, Conditions: page.MetadataConditions(intentMetadata, "p", f.Metadata),
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return page.Union(r, page.OneOf("p.status", f.Status), func(w *page.Where) (string, []any) { return intentsOf(w, f, r, narrow) })
		},
	})
}

func intentsOf(w *page.Where, f IntentFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`p.tenant_id = @tenant and p.livemode = @live and p.gateway_id is not null`)
	page.Equal(w, `p.booking_id = ?`, f.Booking)
	page.Equal(w, `p.customer_id = ?`, f.Customer)
	narrow(w)
	tail, args := w.Page(r, "p")
	return intents.Select + tail, args
}
