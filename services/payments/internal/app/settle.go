package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

const (
	paidAtOnce    = 100              // payments of one booking that one step settles
	settlingLease = 60 * time.Second // longer than a step takes
)

// Settler decides what is owed back to the payers of a canceled or expired booking: the share of the payments that the booking's
// policy grants, and payments that arrived too late. OwedRefunds returns the money. Bookings reports the version of the booking's account
// at which the booking was canceled, or when its hold expired. The account and the gateway show what was received and returned after it. The
// order of events therefore does not matter. Any number of processes may run Settler at the same time.
type Settler struct {
	Intents *Intents
	Lookup  SettlementService
	Worker  *pg.DB // worker role: finds due bookings
	Log     *slog.Logger

	failing operation.Failing
}

// SettlementService is the bookings service.
type SettlementService interface {
	// Settlement returns the facts that decide about the payments of a booking.
	Settlement(ctx context.Context, id domain.BookingID) (domain.Settlement, error)
}

// errNotLost reports that this service knows of the end of a booking, and bookings does not.
var errNotLost = errors.New("booking is neither canceled nor expired")

// Run settles due bookings of all tenants. It retries a booking later if that fails.
func (a *Settler) Run(ctx context.Context) error {
	due := operation.Workers[store.DueBooking]{
		Service: "payments",
		DB:      a.Worker, Now: a.Intents.Now, Find: store.Settlements.Find(), Owner: func(row store.DueBooking) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.DueBooking) error {
			if err := a.step(ctx, row.BookingID); err != nil {
				return fmt.Errorf("booking %s: %w", row.BookingID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "payments of cancelled and expired bookings not settled yet"),
	}
	if err := due.Run(ctx); err != nil {
		return fmt.Errorf("bookings whose payments are to be settled: %w", err)
	}
	return nil
}

// step settles the payments of a booking. If that fails, the booking stays due for a later step.
func (a *Settler) step(ctx context.Context, booking domain.BookingID) error {
	db, now := a.Intents.DB, a.Intents.Now()
	var tries int
	err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		tries, err = store.Settlements.Take(ctx, tx, booking, now, now.Add(settlingLease))
		return err
	})
	if err != nil || tries == 0 {
		return err
	}
	err = a.settle(ctx, booking)
	return errors.Join(quiet(err), a.Intents.endStep(ctx, store.Settlements, booking, tries, err))
}

// quiet drops errNotLost, which only means that it is too early to settle.
func quiet(err error) error {
	if errors.Is(err, errNotLost) {
		return nil
	}
	return err
}

// settle records what is owed back, and which payments are settled. All returns after the booking was lost count, no matter who created
// them.
func (a *Settler) settle(ctx context.Context, booking domain.BookingID) error {
	db := a.Intents.DB
	list, err := store.Unsettled(ctx, db.Read(ctx), booking, paidAtOnce)
	if err != nil || len(list) == 0 {
		return err
	}
	s, err := a.Lookup.Settlement(ctx, booking)
	if err != nil {
		return err
	}
	if !s.Lost {
		return errNotLost
	}
	if s.AutoRefund && s.Due != nil && s.Due.Minor > 0 {
		err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			return a.owe(ctx, tx, domain.OwedRefund{
				Cause: domain.BookingCancelled, Subject: booking.String(), Booking: booking, Amount: s.Due.Minor, Code: s.Due.Currency,
				AccountPoint: s.Ended,
			})
		})
		if err != nil {
			return err
		}
	}
	late, err := store.LatePayments(ctx, db.Read(ctx), domain.BookingMoney(booking, s.Code), s)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := a.paid(ctx, p, slices.Contains(late, p.GatewayID), s.RefundLatePayments); err != nil {
			return err
		}
	}
	return nil
}

// owe records an amount that is owed back.
func (a *Settler) owe(ctx context.Context, tx pg.Tx, o domain.OwedRefund) error {
	now := a.Intents.Now()
	o.ID, o.DueAt = ids.New[domain.OwedPrefix](), &now
	return store.PutOwed(ctx, tx, o)
}

// paid settles a payment. A late payment is counted, and it is owed back if the policy requires this.
func (a *Settler) paid(ctx context.Context, p domain.Intent, late, refund bool) error {
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := store.Settle(ctx, tx, p.ID)
		if err != nil || !first || !late {
			return err
		}
		if refund {
			err := a.owe(ctx, tx, domain.OwedRefund{
				Cause: domain.PaidLate, Subject: string(p.GatewayID), Booking: p.BookingID, Amount: p.Received, Code: p.Amount.Currency,
			})
			if err != nil {
				return err
			}
		}
		tx.AfterCommit(func() {
			a.Intents.Metrics.paymentLate()
			a.Log.WarnContext(ctx, "payment received for a cancelled or expired booking", slog.String("payment", string(p.GatewayID)),
				slog.String("booking", p.BookingID.String()), slog.Bool("refunded", refund))
		})
		return nil
	})
}

const (
	// owedLease is longer than a step takes. After an error, the owed refund is due again when the lease has ended.
	owedLease = 60 * time.Second
	// refundsAtOnce limits how many refunds one step creates for an owed refund, each of up to domain.MaxAllocations payments.
	refundsAtOnce = 5
	// readsAtOnce limits how many payments one step reads at the gateway at the same time.
	readsAtOnce = 4
)

// OwedRefunds creates the refunds that policies owe, until their money is returned or a person closes them. It retries failed
// refunds daily. Any number of processes may run it at the same time: a refund begins under the locks of its payments, whose
// refunds show the remaining amount.
type OwedRefunds struct {
	Refunds *Refunds
	Worker  *pg.DB // worker role: finds due owed refunds
	Log     *slog.Logger

	failing operation.Failing
}

// Run processes due owed refunds of all tenants. It retries failed ones later.
func (a *OwedRefunds) Run(ctx context.Context) error {
	due := operation.Workers[store.OwedDue]{
		Service: "payments",
		DB:      a.Worker, Now: a.Refunds.Intents.Now, Find: store.OwedRefundsDue, Owner: func(row store.OwedDue) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.OwedDue) error {
			if err := a.step(ctx, row); err != nil {
				return fmt.Errorf("%s %s: %w", row.Cause, row.Subject, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "owed refunds not made yet"),
	}
	if err := due.Run(ctx); err != nil {
		return fmt.Errorf("refunds that are owed: %w", err)
	}
	return nil
}

// step processes an owed refund. It creates the remaining refunds one after the other, until nothing is left to do now. When a
// refund ends, the owed refund becomes due again, so that the next step continues where this one stops.
func (a *OwedRefunds) step(ctx context.Context, due store.OwedDue) error {
	db, now := a.Refunds.Intents.DB, a.Refunds.Intents.Now()
	var o *domain.OwedRefund
	err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		o, err = store.TakeOwed(ctx, tx, due, now, now.Add(owedLease))
		return err
	})
	if err != nil || o == nil {
		return err
	}
	read := false
	for range refundsAtOnce {
		var r *domain.Refund
		err := operation.RetryTx(ctx, db, func(ctx context.Context, tx pg.Tx) error {
			var unread []domain.Intent
			var err error
			if r, unread, err = a.next(ctx, tx, *o, read); err != nil || len(unread) == 0 {
				return err
			}
			return &operation.Again{Why: "payments that may have been refunded at the gateway", Fetch: func(ctx context.Context) error {
				read = true
				return a.read(ctx, unread)
			}}
		})
		if err != nil || r == nil {
			return err
		}
		failpoint.Here("owed.begun")
		a.make(ctx, *r)
	}
	return nil
}

// next checks an owed refund under the locks of its payments, and writes the next refund. It returns nil if there is none now. The
// refund and its reserved amount are written in one transaction, which commits before the gateway is called. RefundCompleter
// resumes the calls of a crashed process. Before any refund, next requires that the payments were read. If they were not, it
// returns the payments that could be refunded instead: a refund created at the gateway counts, whether or not its event has
// arrived.
func (a *OwedRefunds) next(ctx context.Context, tx pg.Tx, o domain.OwedRefund, read bool) (next *domain.Refund, unread []domain.Intent, err error) {
	now := a.Refunds.Intents.Now()
	if err := store.LockOwedPayments(ctx, tx, o); err != nil {
		return nil, nil, err
	}
	if o, err = store.OwedForUpdate(ctx, tx, o.ID); err != nil || o.State == domain.OwedClosed {
		return nil, nil, err
	}
	before := o
	money, err := store.OwedMoney(ctx, tx, o)
	if err != nil {
		return nil, nil, err
	}
	o, left := o.Look(money, now)
	if left == 0 {
		return nil, nil, store.SaveOwed(ctx, tx, o, o.Seen() != before.Seen())
	}
	intents, failed, err := store.OwedPayments(ctx, tx, o, paidAtOnce)
	if err != nil {
		return nil, nil, err
	}
	r, err := o.Refund(o.SelectPayments(intents, failed, now), left, now)
	if errors.Is(err, domain.ErrNothingToRefund) {
		o = o.Stuck(len(failed) > 0, now)
		return nil, nil, store.SaveOwed(ctx, tx, o, o.Seen() != before.Seen())
	}
	if err != nil || !read {
		return nil, intents, err
	}
	if r, err = a.Refunds.insert(ctx, tx, r); err != nil {
		return nil, nil, err
	}
	o.Tries, o.RefundID = o.Tries+1, r.ID
	return &r, nil, store.SaveOwed(ctx, tx, o, true)
}

// read applies the gateway's state of payments. If the gateway refuses to show a payment, for example because it no longer accepts
// the account's keys, the payment stays unchanged. The gateway then refuses its refund too, and that refusal is shown.
func (a *OwedRefunds) read(ctx context.Context, payments []domain.Intent) error {
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for _, p := range payments {
		reads.Go(func() error {
			account, err := a.Refunds.Intents.Accounts.Account(ctx, a.Refunds.Intents.DB.Read(ctx), p.AccountID)
			if err != nil {
				return err
			}
			_, err = a.Refunds.Intents.Refresh(ctx, account, p)
			if refused := (*domain.RefusedError)(nil); errors.As(err, &refused) {
				return nil
			}
			return err
		})
	}
	return reads.Wait()
}

// make calls the gateway. If the gateway is busy or does not respond, the refund stays open, and RefundCompleter resumes it.
func (a *OwedRefunds) make(ctx context.Context, r domain.Refund) {
	begun := &ownRefund{createRefund{Refunds: a.Refunds, r: r}}
	err := operation.Resume(ctx, a.Refunds.Intents.operations(), begun)
	if busy := new(operation.UnderWay); err != nil && !errors.As(err, &busy) {
		a.Log.WarnContext(ctx, "automatic refund not completed; trying again", slog.String("refund", r.ID.String()), slog.String("booking", r.BookingID.String()), slog.Any("error", err))
	}
}

// ownRefund is a refund that next began.
type ownRefund struct{ createRefund }

// Begin implements operation.Operation.
func (*ownRefund) Begin(context.Context, pg.Tx, string) (done bool, err error) { return false, nil }

// Close closes an owed refund on a person's request, with a note of the reason. Closing it again changes nothing.
func (a *OwedRefunds) Close(ctx context.Context, tx pg.Tx, id domain.OwedID, match patch.Precondition, note string) (domain.OwedRefund, error) {
	return a.change(ctx, tx, id, match, owedRefundClosed, func(o domain.OwedRefund) (domain.OwedRefund, error) {
		return o.Close(caller.FromContext(ctx).Actor(), note, a.Refunds.Intents.Now())
	})
}

// Retry makes a failed owed refund due now on a person's request.
func (a *OwedRefunds) Retry(ctx context.Context, tx pg.Tx, id domain.OwedID, match patch.Precondition) (domain.OwedRefund, error) {
	return a.change(ctx, tx, id, match, owedRefundRetried, func(o domain.OwedRefund) (domain.OwedRefund, error) {
		return o.Retry(a.Refunds.Intents.Now())
	})
}

// change writes a person's change of an owed refund, with its event for the audit log.
func (a *OwedRefunds) change(
	ctx context.Context, tx pg.Tx, id domain.OwedID, match patch.Precondition,
	event func(domain.OwedRefund, json.RawMessage) outbox.Event, change func(domain.OwedRefund) (domain.OwedRefund, error),
) (domain.OwedRefund, error) {
	before, err := store.OwedForUpdate(ctx, tx, id)
	if err != nil {
		return before, err
	}
	o, err := change(before)
	if err != nil || o.State == domain.OwedClosed && before.State == domain.OwedClosed {
		return o, err
	}
	if err := match.Check(before.Version); err != nil {
		return o, err
	}
	o.Version++
	audited := o
	audited.Note = "" // may contain personal data
	body, err := contract.Encode(view.OwedRefund(audited))
	if err != nil {
		return o, err
	}
	if err := store.SaveOwed(ctx, tx, o, true); err != nil {
		return o, err
	}
	return o, outbox.Emit(ctx, tx, a.Refunds.Intents.Wake, event(o, body))
}
