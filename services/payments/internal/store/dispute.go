package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

var disputes = pg.NewTable("disputes", "d", nil, func(d *domain.Dispute) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &d.ID, "opened_at", &d.OpenedAt},
		Values: pg.F{
			"charge", &d.Charge, "amount", &d.Amount.Minor, "currency", &d.Amount.Currency, "reason", &d.Reason, "status", &d.Status, "due_by", &d.DueBy,
			"closed_at", &d.ClosedAt,
		},
		Read: pg.F{"version", &d.Version},
	}
})

// DisputesOfIntent reads the disputes of an intent. A transaction that changes them must have locked the intent.
func DisputesOfIntent(ctx context.Context, q pg.Q, intent domain.IntentID) (map[string]domain.Dispute, error) {
	list, err := disputes.Many(ctx, q, `d.intent_id = @intent order by d.id`, pg.Args{"intent": intent})
	byID := make(map[string]domain.Dispute, len(list))
	for _, d := range list {
		byID[d.ID] = d
	}
	return byID, err
}

var putDispute = disputes.Put("account_id", "@account", "intent_id", "@intent", "created_at", "clock_timestamp()", "updated_at", "clock_timestamp()") +
	` returning d.version`

// PutDispute writes a dispute of an intent that the transaction has locked, and returns the dispute with its new version.
func PutDispute(ctx context.Context, tx pg.Tx, p domain.Intent, d domain.Dispute) (domain.Dispute, error) {
	args := disputes.Args(d)
	args["account"], args["intent"] = p.AccountID, p.ID
	b := &pgx.Batch{}
	b.Queue(putDispute, args).QueryRow(pg.Into(&d.Version))
	return pg.SendFor(ctx, tx, b, "write dispute", &d)
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
