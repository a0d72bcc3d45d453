package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// Charges stores card charges, allocates them to the invoices of their booking, and shows their refunds on these invoices.
type Charges struct {
	DB       *pg.DB
	Invoices *Invoices
	Tenants  TenantService
}

// ApplyEvent applies an event about a charge once, however often it arrives. The first event allocates the charge to invoices,
// regardless of its other content. The newest event decides what was refunded. The context carries the event's tenant and mode.
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
		store.HoldMoney(tx, c.Booking)
		if first, err = store.InsertCharge(ctx, tx, c); err != nil {
			return err
		}
		if first { // with the refunds so far, as if its events had arrived in order
			if _, err := a.Invoices.allocate(ctx, tx, c.Booking, c.Invoice); err != nil {
				return err
			}
		}
		newer, err := a.refund(ctx, tx, c)
		if err != nil || !newer {
			return err
		}
		_, err = a.Invoices.allocate(ctx, tx, c.Booking, c.Invoice) // a failed refund frees money
		return err
	})
	if err != nil {
		return fmt.Errorf("put charge on invoices: %w", err)
	}
	return nil
}

// refund stores a state of a charge and shows it on the invoices that the charge has paid. It returns false if a state at least as new
// is stored already.
func (a *Charges) refund(ctx context.Context, tx pg.Tx, c domain.Charge) (newer bool, err error) {
	unapplied, newer, err := store.PutChargeState(ctx, tx, c)
	if err != nil || !newer {
		return false, err
	}
	return true, a.show(ctx, tx, c, unapplied)
}

// spread shows the stored state of a charge again, because a credit note has refunded another part of it.
func (a *Charges) spread(ctx context.Context, tx pg.Tx, id string) error {
	c, unapplied, err := store.Charge(ctx, tx, id)
	if err != nil {
		return err
	}
	return a.show(ctx, tx, c, unapplied)
}

// show writes the refunded amounts and the dispute of a charge to the invoices that it has paid. It locks the invoices in the order in
// which they were paid, and changes each once, with all parts of the charge.
func (a *Charges) show(ctx context.Context, tx pg.Tx, c domain.Charge, unapplied int64) error {
	list, err := store.ChargedInvoices(ctx, tx, c)
	if err != nil {
		return err
	}
	var invoices []domain.InvoiceID
	parts := map[domain.InvoiceID]map[domain.PaymentID]int64{}
	for i, refunded := range domain.RefundedParts(c.Refunded, unapplied, list) {
		p := list[i]
		if parts[p.Invoice] == nil {
			invoices, parts[p.Invoice] = append(invoices, p.Invoice), map[domain.PaymentID]int64{}
		}
		parts[p.Invoice][p.Payment] = refunded
	}
	for _, id := range invoices {
		_, err := a.Invoices.change(ctx, tx, id, func(current domain.Invoice, _ domain.Place) (domain.Invoice, error) {
			return current.Refunded(parts[id], c.Disputed), nil
		}, func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
			return store.RefundPayments(ctx, tx, v, parts[id], c.Disputed)
		})
		if err != nil {
			return err
		}
	}
	return store.PutDisputed(ctx, tx, list, c.Disputed) // also if the invoice does not change: another charge may be disputed too
}

// changeAndAllocate changes an invoice. If the invoice awaits money afterwards, it allocates the unallocated money of its booking
// to the booking's invoices.
func (a *Invoices) changeAndAllocate(
	ctx context.Context, tx pg.Tx, id domain.InvoiceID, apply func(current domain.Invoice, at domain.Place) (domain.Invoice, error),
	write func(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error),
) (domain.Invoice, error) {
	store.HoldMoneyOfInvoice(tx, id)
	v, err := a.change(ctx, tx, id, apply, write)
	if err != nil || v.BookingID.IsZero() || !v.Status.Awaits() {
		return v, err
	}
	store.HoldMoney(tx, v.BookingID) // the draft may have got another booking in the meantime
	moved, err := a.allocate(ctx, tx, v.BookingID, domain.InvoiceID{})
	if err != nil || !moved {
		return v, err
	}
	at, err := a.Place(ctx)
	if err != nil {
		return domain.Invoice{}, err
	}
	v, err = store.Invoice(ctx, tx, id)
	return v.At(at), err
}

// allocate allocates the unallocated money of a booking to the invoices that await money: first to the named one, then to the
// oldest. It reports whether it has allocated any. The transaction holds the money of the booking.
func (a *Invoices) allocate(ctx context.Context, tx pg.Tx, booking domain.BookingID, named domain.InvoiceID) (moved bool, err error) {
	charges, err := store.UnallocatedCharges(ctx, tx, booking)
	if err != nil || len(charges) == 0 {
		return false, err
	}
	list, err := store.PayableInvoices(ctx, tx, booking, named)
	if err != nil {
		return false, err
	}
	for _, c := range charges {
		for _, id := range list {
			if c.Rest == 0 {
				break
			}
			taken, err := a.payByCard(ctx, tx, id, c)
			if err != nil {
				return false, err
			}
			if taken > 0 {
				c.Rest, c.Parts, moved = c.Rest-taken, c.Parts+1, true
			}
		}
	}
	return moved, nil
}

// payByCard allocates as much of a charge to an invoice as the invoice accepts.
func (a *Invoices) payByCard(ctx context.Context, tx pg.Tx, id domain.InvoiceID, c domain.UnallocatedCharge) (taken int64, err error) {
	_, err = a.change(ctx, tx, id, func(current domain.Invoice, at domain.Place) (out domain.Invoice, err error) {
		out, taken, err = current.PayByCard(ids.New[ids.PaymentPrefix](), c, at)
		return out, err
	}, store.AddPayment)
	if err != nil || taken == 0 {
		return 0, err
	}
	return taken, store.TakeUnapplied(ctx, tx, c.ID, taken)
}

// bookingsAtOnce is how many bookings Allocator checks in one run.
const bookingsAtOnce = 100

// Allocator allocates to invoices the money that an earlier version of this service left unallocated, a few bookings in each run.
// Any number of processes may run it at the same time.
type Allocator struct {
	DB       *pg.DB
	Invoices *Invoices
	Tenants  TenantService
	Worker   *pg.DB // worker role: finds the bookings
	Log      *slog.Logger

	after store.BookingMoney
}

// Run processes the next bookings with unallocated money, and starts again after the last one.
func (a *Allocator) Run(ctx context.Context) error {
	var found []store.BookingMoney
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		found, err = store.UnallocatedBookings(ctx, tx, a.after, bookingsAtOnce)
		return err
	})
	if err != nil {
		return fmt.Errorf("bookings with money on no invoice: %w", err)
	}
	var failed []error
	for _, b := range found {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := a.allocate(ctx, b); err != nil {
			failed = append(failed, fmt.Errorf("booking %s: %w", b.BookingID, err))
		}
	}
	if len(failed) > 0 {
		a.Log.WarnContext(ctx, "money that cannot be put on invoices", slog.Int("count", len(failed)), slog.Any("error", errors.Join(failed...)))
	}
	a.after = store.BookingMoney{}
	if len(found) == bookingsAtOnce {
		a.after = found[len(found)-1]
	}
	return nil
}

func (a *Allocator) allocate(ctx context.Context, b store.BookingMoney) error {
	acting, err := a.Tenants.Acting(ctx, b.TenantID, caller.ModeOf(b.Livemode))
	if err != nil {
		return err
	}
	return a.DB.Tx(caller.With(ctx, acting), func(ctx context.Context, tx pg.Tx) error {
		store.HoldMoney(tx, b.BookingID)
		_, err := a.Invoices.allocate(ctx, tx, b.BookingID, domain.InvoiceID{})
		return err
	})
}
