package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

const (
	paidAtOnce    = 100              // payments of one booking that one turn settles
	settlingLease = 60 * time.Second // longer than a turn takes
)

// Settler refunds by itself what the policy of a cancelled or expired booking says: a share of what was paid, and payments that came
// too late. Bookings has decided which payments are late, by counting them after the booking was lost, so the order in which events
// reach this service does not matter. Any number of processes may run it at once.
type Settler struct {
	Refunds *Refunds
	Lookup  SettlementService
	Worker  *pg.DB // worker role: finds what is due
	Log     *slog.Logger

	failing failing
}

// SettlementService is the bookings service.
type SettlementService interface {
	// Settlement asks what decides about the payments of a booking.
	Settlement(ctx context.Context, id domain.BookingID) (domain.Settlement, error)
}

// errUncounted says that bookings has not counted a payment yet.
var errUncounted = errors.New("payments of the booking are still to be counted")

// Run settles what is due of all tenants. A booking that fails is tried again later.
func (a *Settler) Run(ctx context.Context) error {
	due := workers[store.LostBooking]{
		db: a.Worker, now: a.Refunds.Intents.Now, find: store.SettlementsDue, home: func(row store.LostBooking) store.Home { return row.Home },
		do: func(ctx context.Context, row store.LostBooking) error {
			if err := a.turn(ctx, row.BookingID); err != nil {
				return fmt.Errorf("booking %s: %w", row.BookingID, err)
			}
			return nil
		},
		report: a.failing.report(a.Log, "payments of cancelled and expired bookings that cannot be settled"),
	}
	if err := due.run(ctx); err != nil {
		return fmt.Errorf("bookings whose payments are to be settled: %w", err)
	}
	return nil
}

// turn settles the payments of a booking. It stays due, for later, when that fails or bookings has not counted all of them.
func (a *Settler) turn(ctx context.Context, booking domain.BookingID) error {
	db, now := a.Refunds.Intents.DB, a.Refunds.Intents.Now()
	var tries int
	err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		tries, err = store.TakeSettlement(ctx, tx, booking, now, now.Add(settlingLease))
		return err
	})
	if err != nil || tries == 0 {
		return err
	}
	err = a.settle(ctx, booking)
	return errors.Join(quiet(err), db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		ended, failed := false, error(nil)
		if err == nil {
			ended, failed = store.EndSettlement(ctx, tx, booking)
		}
		if ended || failed != nil {
			return failed
		}
		now := a.Refunds.Intents.Now()
		return store.PostponeSettlement(ctx, tx, booking, *later(now, domain.Event{Tries: tries}.Again(now)))
	}))
}

// quiet drops the error of what is only too early.
func quiet(err error) error {
	if errors.Is(err, errUncounted) {
		return nil
	}
	return err
}

// settle begins the refunds that the policy asks for, and notes which payments are settled.
func (a *Settler) settle(ctx context.Context, booking domain.BookingID) error {
	list, err := store.Unsettled(ctx, a.Refunds.Intents.DB.Read(ctx), booking, paidAtOnce)
	if err != nil || len(list) == 0 {
		return err
	}
	s, err := a.Lookup.Settlement(ctx, booking)
	if err != nil {
		return err
	}
	if !s.Lost {
		return errUncounted // this service knows more than bookings has answered
	}
	if s.AutoRefund && s.Due != nil && s.Due.Minor > 0 {
		err := a.refund(ctx, domain.AutomaticRefund{
			Cause: domain.BookingCancelled, Subject: booking.String(), Booking: booking, Wanted: s.Due.Minor, Code: s.Due.Currency,
		}, func(p domain.Intent) bool { counted, ok := s.Counted[p.GatewayID]; return ok && !counted.Late })
		if err != nil {
			return err
		}
	}
	for _, p := range list {
		counted, ok := s.Counted[p.GatewayID]
		if !ok {
			err = errUncounted
			continue
		}
		if err := a.paid(ctx, p, counted.Late, s.RefundLatePayments); err != nil {
			return err
		}
	}
	return err
}

// paid settles a payment: a late one is counted, and refunded where the policy says so.
func (a *Settler) paid(ctx context.Context, p domain.Intent, late, refund bool) error {
	if late && refund {
		err := a.refund(ctx, domain.AutomaticRefund{
			Cause: domain.PaidLate, Subject: string(p.GatewayID), Booking: p.BookingID, Intent: p.GatewayID, Wanted: p.Received, Code: p.Amount.Currency,
		}, func(domain.Intent) bool { return true })
		if err != nil {
			return err
		}
	}
	return a.Refunds.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := store.Settle(ctx, tx, p.ID)
		if err != nil || !first || !late {
			return err
		}
		tx.AfterCommit(func() {
			a.Refunds.Intents.Metrics.paymentLate()
			a.Log.WarnContext(ctx, "payment of a cancelled or expired booking", slog.String("payment", string(p.GatewayID)),
				slog.String("booking", p.BookingID.String()), slog.Bool("refunded", refund))
		})
		return nil
	})
}

// refund makes an automatic refund over the intents that count, once. Its row is committed before the gateway is asked, together with
// the note that it was begun; what a dead process leaves is resumed by RefundCompleter.
func (a *Settler) refund(ctx context.Context, auto domain.AutomaticRefund, counts func(domain.Intent) bool) error {
	var r *domain.Refund
	err := a.Refunds.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		r = nil
		first, err := store.BeginAutomaticRefund(ctx, tx, auto)
		if err != nil || !first {
			return err
		}
		made, err := a.begin(ctx, tx, auto, counts)
		if errors.Is(err, domain.ErrNothingToRefund) {
			a.Log.WarnContext(ctx, "nothing is left to refund by card", slog.String("of", auto.Subject), slog.Int64("wanted", auto.Wanted))
			return nil
		}
		if err != nil {
			return err
		}
		if made.Amount.Minor < auto.Wanted {
			a.Log.WarnContext(ctx, "less is refunded by card than the policy says", slog.String("of", auto.Subject),
				slog.Int64("wanted", auto.Wanted), slog.Int64("refunded", made.Amount.Minor))
		}
		r = &made
		return store.SaveAutomaticRefund(ctx, tx, auto, made.ID)
	})
	if err != nil || r == nil {
		return err
	}
	err = a.Refunds.run(ctx, func(ctx context.Context, verb func(ctx context.Context, tx pg.Tx) (domain.Refund, error)) error {
		_, err := a.Refunds.inTx(ctx, verb)
		return err
	}, *r, false) // not fresh: a gateway that is busy does not end it
	if err != nil {
		a.Log.WarnContext(ctx, "automatic refund", slog.String("refund", r.ID.String()), slog.String("of", auto.Subject), slog.Any("error", err))
	}
	return nil // the refund is begun, and RefundCompleter goes on with it
}

// begin reserves the money under the locks of the intents and writes the refund.
func (a *Settler) begin(ctx context.Context, tx pg.Tx, auto domain.AutomaticRefund, counts func(domain.Intent) bool) (domain.Refund, error) {
	locked, err := store.IntentsToRefund(ctx, tx, auto.Intent, auto.Booking, paidAtOnce)
	if err != nil {
		return domain.Refund{}, err
	}
	intents := make([]domain.Intent, 0, len(locked))
	for _, p := range locked {
		if counts(p) && p.Amount.Currency == auto.Code {
			intents = append(intents, p)
		}
	}
	in, err := auto.Refund(intents)
	if err != nil {
		return domain.Refund{}, err
	}
	r, err := domain.NewRefund(in, intents, a.Refunds.Intents.Now())
	if err != nil {
		return domain.Refund{}, err
	}
	r, taken, err := store.InsertRefund(ctx, tx, r)
	if err == nil && taken {
		err = errUnderWay
	}
	return r, err
}
