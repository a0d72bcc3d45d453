package app

import (
	"context"
	"encoding/json"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// notifyFailures emits payment.failed once for each failed charge, in order. If the gateway's state of the intent results from the
// last charge, notifyFailures returns that charge without emitting its event.
func (a *Intents) notifyFailures(
	ctx context.Context, tx pg.Tx, p domain.Intent, snapshot domain.Snapshot,
) (after domain.Intent, last *domain.FailedCharge, err error) {
	fresh, err := store.MarkFailuresReported(ctx, tx, p.ID, snapshot.FailedCharges())
	if err != nil {
		return domain.Intent{}, nil, err
	}
	for i, c := range fresh {
		if i == len(fresh)-1 && c.ID == snapshot.FailedCharge && !p.Status.Final() {
			return p, &fresh[i], nil
		}
		if p, err = a.fail(ctx, tx, p, c); err != nil {
			return domain.Intent{}, nil, err
		}
	}
	return p, nil, nil
}

// fail records the failure of a charge of an intent. If the intent has ended in the meantime, only the event shows the failure.
func (a *Intents) fail(ctx context.Context, tx pg.Tx, p domain.Intent, c domain.FailedCharge) (domain.Intent, error) {
	if !p.Status.Final() {
		return a.write(ctx, tx, p, p.Fail(c))
	}
	failed := p.Fail(c)
	saved := failed
	saved.Failure = p.Failure
	saved, err := store.UpdateIntent(ctx, tx, saved, true)
	if err != nil {
		return domain.Intent{}, err
	}
	failed.Version, failed.UpdatedAt = saved.Version, saved.UpdatedAt
	body, err := outbox.Body(ctx, view.Intent, failed)
	if err != nil {
		return domain.Intent{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, paymentFailed(failed, body, []byte(`{}`)))
}

// applyDisputes writes the disputes of an intent as the gateway reports them. It emits an event for each dispute that began or
// ended.
func (a *Intents) applyDisputes(ctx context.Context, tx pg.Tx, p domain.Intent, reported []domain.Dispute) error {
	if len(reported) == 0 {
		return nil
	}
	known, err := store.DisputesOfIntent(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	for _, d := range reported {
		if before, ok := known[d.ID]; ok && before.Same(d) {
			continue
		}
		if err := a.applyDispute(ctx, tx, p, known[d.ID], d); err != nil {
			return err
		}
	}
	return nil
}

// applyDispute writes a change of a dispute. before has no version if the dispute is new. If the dispute ended before it was first
// read, applyDispute emits the opening event first.
func (a *Intents) applyDispute(ctx context.Context, tx pg.Tx, p domain.Intent, before, d domain.Dispute) error {
	opened := before.Version == 0 || d.Status.Open() && !before.Status.Open()
	closed := d.Status.Outcome() != "" && d.Status.Outcome() != before.Status.Outcome()
	if before.Version == 0 {
		closed = !d.Status.Open()
	}
	d.ClosedAt = before.ClosedAt
	if opened {
		begun := d
		begun.ClosedAt = nil
		if !begun.Status.Open() {
			begun.Status = domain.DisputeNeedsResponse
		}
		tx.AfterCommit(a.Metrics.disputeOpened)
		if err := a.putDispute(ctx, tx, p, begun, disputeOpened); err != nil || !closed {
			return err
		}
	}
	if !closed {
		_, err := store.PutDispute(ctx, tx, p, d)
		return err
	}
	at := a.now(ctx)
	d.ClosedAt = &at
	tx.AfterCommit(func() { a.Metrics.disputeClosed(d.Status.Outcome()) })
	return a.putDispute(ctx, tx, p, d, disputeClosed)
}

// putDispute writes a dispute with its event.
func (a *Intents) putDispute(
	ctx context.Context, tx pg.Tx, p domain.Intent, d domain.Dispute, event func(domain.Dispute, json.RawMessage) outbox.Event,
) error {
	d, err := store.PutDispute(ctx, tx, p, d)
	if err != nil {
		return err
	}
	body, err := contract.Encode(internalapi.Dispute{
		ID: d.ID, PaymentIntentID: string(p.GatewayID), BookingID: p.BookingID.String(), Amount: d.Amount.Minor, Currency: d.Amount.Currency,
		Reason: d.Reason, Status: string(d.Status), Outcome: d.Status.Outcome(), DueBy: d.DueBy,
	})
	if err != nil {
		return err
	}
	return outbox.Emit(ctx, tx, a.Wake, event(d, body))
}
