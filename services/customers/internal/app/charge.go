package app

import (
	"context"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// Charges puts what was taken by card on the invoices of its booking.
type Charges struct {
	DB       *pg.DB
	Invoices *Invoices
	Tenants  TenantService
}

// ApplyEvent takes one event about a charge, once however often it comes. The context carries the event's tenant and mode.
func (a *Charges) ApplyEvent(ctx context.Context, event ids.Event, c domain.Charge) error {
	from := caller.FromContext(ctx)
	acting, err := a.Tenants.Acting(ctx, from.Tenant, from.Mode)
	if err != nil {
		return err
	}
	acting.RequestID = from.RequestID
	err = a.DB.Tx(caller.With(ctx, acting), func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		if first, err = store.InsertCharge(ctx, tx, c); err != nil || !first {
			return err
		}
		return a.pay(ctx, tx, c)
	})
	if err != nil {
		return fmt.Errorf("put charge on invoices: %w", err)
	}
	return nil
}

// pay puts the charge on one invoice after another. What none takes stays on the booking.
func (a *Charges) pay(ctx context.Context, tx pg.Tx, c domain.Charge) error {
	list, err := store.PayableInvoices(ctx, tx, c.Booking, c.Invoice)
	if err != nil {
		return err
	}
	rest := c.Amount.Minor
	for _, id := range list {
		if rest == 0 {
			break
		}
		var taken int64
		_, err := a.Invoices.change(ctx, tx, id, func(current domain.Invoice, at domain.Place) (out domain.Invoice, err error) {
			out, taken, err = current.PayByCard(ids.New[domain.PaymentPrefix](), c, rest, at)
			return out, err
		}, store.AddPayment)
		if err != nil {
			return err
		}
		rest -= taken
	}
	return store.SaveUnapplied(ctx, tx, c.ID, rest)
}
