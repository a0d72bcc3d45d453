package store

import (
	"context"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// IntentFilter selects intents of a list. Nil and empty fields select all.
type IntentFilter struct {
	Status  []domain.Status
	Booking *domain.BookingID
}

// Intents reads one page of the intents that the gateway knows.
func Intents(ctx context.Context, q pg.Q, f IntentFilter, r page.Request) (page.Rows[domain.Intent], error) {
	sql, args := page.Union(r, page.OneOf("p.status", f.Status), func(w *page.Where) (string, []any) { return intentsOf(w, f, r) })
	return page.Read(ctx, q, r, scanIntent, sql, args...)
}

func intentsOf(w *page.Where, f IntentFilter, r page.Request) (string, []any) {
	w.Add(`p.tenant_id = @tenant and p.livemode = @live and p.gateway_id is not null`)
	if f.Booking != nil {
		w.Add(`p.booking_id = ?`, *f.Booking)
	}
	tail, args := w.Page(r, "p")
	return `select ` + intentColumns + ` from payment_intents p ` + tail, args
}
