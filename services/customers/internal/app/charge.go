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

// Charges keeps what was taken by card, puts it on the invoices of its booking, and shows there what of it was refunded.
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
		if err := store.HoldMoney(ctx, tx, c.Booking); err != nil {
			return err
		}
		if first, err = store.InsertCharge(ctx, tx, c); err != nil {
			return err
		}
		if first { // with what of it is refunded already, as if its events had come in order
			if _, err := a.Invoices.allocate(ctx, tx, c.Booking, c.Invoice); err != nil {
				return err
			}
		}
		newer, err := a.refund(ctx, tx, c)
		if err != nil || !newer {
			return err
		}
		_, err = a.Invoices.allocate(ctx, tx, c.Booking, c.Invoice) // a refund that has failed frees money
		return err
	})
	if err != nil {
		return fmt.Errorf("put charge on invoices: %w", err)
	}
	return nil
}

// refund shows on the invoices that the charge has paid what was refunded of it, and whether it is disputed; false when something as new
// is known already. The invoices are locked in the order in which they were paid.
func (a *Charges) refund(ctx context.Context, tx pg.Tx, c domain.Charge) (newer bool, err error) {
	unapplied, newer, err := store.PutChargeState(ctx, tx, c)
	if err != nil || !newer {
		return false, err
	}
	list, err := store.ChargedInvoices(ctx, tx, c)
	if err != nil {
		return false, err
	}
	for i, refunded := range domain.RefundedParts(c.Refunded, unapplied, list) {
		var index int
		_, err := a.Invoices.change(ctx, tx, list[i].Invoice, func(current domain.Invoice, _ domain.Place) (out domain.Invoice, err error) {
			out, index = current.Refunded(list[i].Payment, refunded, c.Disputed)
			return out, nil
		}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
			return store.RefundPayment(ctx, tx, v, index)
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
