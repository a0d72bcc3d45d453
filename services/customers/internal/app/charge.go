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

// Charges puts what was taken by card on the invoices of its booking, and shows there what of it was refunded.
type Charges struct {
	DB       *pg.DB
	Invoices *Invoices
	Tenants  TenantService
}

// ApplyEvent takes one event about a charge, once however often it comes. The first one puts it on invoices, whatever it says else, and
// the newest one decides what was refunded. The context carries the event's tenant and mode.
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
		if first, err = store.InsertCharge(ctx, tx, c); err != nil {
			return err
		}
		if first {
			if err := a.pay(ctx, tx, c); err != nil {
				return err
			}
		}
		return a.refund(ctx, tx, c)
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
	rest, part := c.Amount.Minor, 1
	for _, id := range list {
		if rest == 0 {
			break
		}
		var taken int64
		_, err := a.Invoices.change(ctx, tx, id, func(current domain.Invoice, at domain.Place) (out domain.Invoice, err error) {
			out, taken, err = current.PayByCard(ids.New[domain.PaymentPrefix](), c, rest, part, at)
			return out, err
		}, store.AddPayment)
		if err != nil {
			return err
		}
		if taken > 0 {
			rest, part = rest-taken, part+1
		}
	}
	return store.SaveUnapplied(ctx, tx, c.ID, rest)
}

// refund shows on the invoices that the charge has paid what was refunded of it, and whether it is disputed. The invoices are locked in
// the order in which they were paid.
func (a *Charges) refund(ctx context.Context, tx pg.Tx, c domain.Charge) error {
	unapplied, newer, err := store.PutChargeState(ctx, tx, c)
	if err != nil || !newer {
		return err
	}
	list, err := store.ChargedInvoices(ctx, tx, c)
	if err != nil {
		return err
	}
	for i, refunded := range domain.RefundedParts(c.Refunded, unapplied, list) {
		var index int
		_, err := a.Invoices.change(ctx, tx, list[i].Invoice, func(current domain.Invoice, _ domain.Place) (out domain.Invoice, err error) {
			out, index = current.Refunded(c.ID, refunded, c.Disputed)
			return out, nil
		}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
			return store.RefundPayment(ctx, tx, v, index)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
