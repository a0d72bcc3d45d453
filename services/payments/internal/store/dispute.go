package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// DisputesOfIntent reads the disputes of an intent. A transaction that changes them must have locked the intent.
func DisputesOfIntent(ctx context.Context, q pg.Q, intent domain.IntentID) (map[string]domain.Dispute, error) {
	list, err := pg.Many(ctx, q, func(row pgx.CollectableRow) (d domain.Dispute, err error) {
		err = row.Scan(&d.ID, &d.Charge, &d.Amount.Minor, &d.Amount.Currency, &d.Reason, &d.Status, &d.DueBy, &d.OpenedAt, &d.ClosedAt, &d.Version)
		return d, err
	}, `select d.id, d.charge, d.amount, d.currency, d.reason, d.status, d.due_by, d.opened_at, d.closed_at, d.version from disputes d
		where d.tenant_id = @tenant and d.livemode = @live and d.intent_id = @intent order by d.id`, pg.Args{"intent": intent})
	if err != nil {
		return nil, fmt.Errorf("disputes of an intent: %w", err)
	}
	byID := make(map[string]domain.Dispute, len(list))
	for _, d := range list {
		byID[d.ID] = d
	}
	return byID, nil
}

// PutDispute writes a dispute of an intent that the transaction has locked, and returns the dispute with its new version.
func PutDispute(ctx context.Context, tx pg.Tx, p domain.Intent, d domain.Dispute) (domain.Dispute, error) {
	version, err := pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `
		insert into disputes as d (tenant_id, livemode, id, account_id, intent_id, charge, amount, currency, reason, status, due_by, opened_at,
			closed_at, created_at, updated_at)
		values (@tenant, @live, @id, @account, @intent, @charge, @amount, @currency, @reason, @status, @due, @opened, @closed,
			clock_timestamp(), clock_timestamp())
		on conflict (tenant_id, livemode, id) do update set charge = excluded.charge, amount = excluded.amount, currency = excluded.currency,
			reason = excluded.reason, status = excluded.status, due_by = excluded.due_by, closed_at = excluded.closed_at, version = d.version + 1,
			updated_at = clock_timestamp()
		returning d.version`, pg.Args{
		"id": d.ID, "account": p.AccountID, "intent": p.ID, "charge": d.Charge, "amount": d.Amount.Minor, "currency": d.Amount.Currency,
		"reason": d.Reason, "status": d.Status, "due": d.DueBy, "opened": d.OpenedAt, "closed": d.ClosedAt,
	})
	if err != nil {
		return domain.Dispute{}, fmt.Errorf("write dispute: %w", err)
	}
	d.Version = version
	return d, nil
}

// MarkFailuresReported marks failed charges of an intent as reported, and returns those that were not reported before, in order.
func MarkFailuresReported(ctx context.Context, tx pg.Tx, intent domain.IntentID, list []domain.FailedCharge) ([]domain.FailedCharge, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	found, err := pg.Many(ctx, tx, pgx.RowTo[string], `insert into failed_charges as f (tenant_id, livemode, intent_id, id)
		select @tenant, @live, @intent, id from unnest(@ids::text[]) id on conflict do nothing returning f.id`, pg.Args{"intent": intent, "ids": ids})
	if err != nil {
		return nil, fmt.Errorf("note failed charges: %w", err)
	}
	fresh := map[string]bool{}
	for _, id := range found {
		fresh[id] = true
	}
	out := make([]domain.FailedCharge, 0, len(found))
	for _, c := range list {
		if fresh[c.ID] {
			out = append(out, c)
			fresh[c.ID] = false
		}
	}
	return out, nil
}
