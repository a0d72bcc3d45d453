package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// PutEvent keeps an event, once however often it comes.
func PutEvent(ctx context.Context, tx pg.Tx, e domain.Event, now time.Time) error {
	var due *time.Time
	if e.Intent != "" {
		due = &now
	}
	_, err := tx.Exec(ctx, `
		insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, refund, received_at, due_at)
		values (@tenant, @live, @account, @id, @type, nullif(@intent::text, ''), nullif(@refund::text, ''), @now, @due)
		on conflict do nothing`, pg.Args{
		"account": e.AccountID, "id": e.ID, "type": e.Type, "intent": string(e.Intent), "refund": e.Refund, "now": now, "due": due,
	})
	if err != nil {
		return fmt.Errorf("keep event: %w", err)
	}
	return nil
}

// EventDue is an event that is to be worked off.
type EventDue struct {
	Home

	AccountID domain.AccountID
	ID        string
}

// EventsDue returns up to limit events of all tenants and modes but those of except that are due, the oldest first; tx has the
// worker role.
func EventsDue(ctx context.Context, tx pg.Tx, now time.Time, except []Home, limit int) ([]EventDue, error) {
	tenants, modes := homes(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[EventDue], `
		select e.tenant_id, e.livemode, e.account_id, e.id from gateway_events e
		where e.due_at is not null and e.due_at <= $3`+outside("e")+` order by e.due_at limit $4`, tenants, modes, now, limit)
}

// TakeEvent takes an event until a time; nil when another process has it or it is worked off.
func TakeEvent(ctx context.Context, tx pg.Tx, account domain.AccountID, id string, now, until time.Time) (*domain.Event, error) {
	found, err := pg.Many(ctx, tx, func(row pgx.CollectableRow) (e domain.Event, err error) {
		err = row.Scan(&e.AccountID, &e.ID, &e.Type, &e.Intent, &e.Refund, &e.Tries, &e.ReceivedAt)
		return e, err
	}, `update gateway_events e set due_at = @until, tries = e.tries + 1
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = @id and e.due_at <= @now
		returning e.account_id, e.id, e.type, coalesce(e.intent, ''), coalesce(e.refund, ''), e.tries, e.received_at`,
		pg.Args{"account": account, "id": id, "now": now, "until": until})
	if err != nil {
		return nil, fmt.Errorf("take event: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// SaveEvent notes when an event is tried again; nil: it is worked off.
func SaveEvent(ctx context.Context, tx pg.Tx, e domain.Event, due *time.Time) error {
	_, err := tx.Exec(ctx, `update gateway_events e set due_at = @due
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = @id`,
		pg.Args{"account": e.AccountID, "id": e.ID, "due": due})
	if err != nil {
		return fmt.Errorf("save event: %w", err)
	}
	return nil
}

// SweepEvents deletes up to limit events of all tenants and modes that came before a time and are worked off. It returns how many;
// tx has the worker role.
func SweepEvents(ctx context.Context, tx pg.Tx, before time.Time, limit int) (int64, error) {
	tag, err := tx.Exec(ctx, `delete from gateway_events where ctid = any(array(
		select e.ctid from gateway_events e where e.due_at is null and e.received_at < $1 order by e.received_at limit $2))
		and due_at is null`, before, limit)
	if err != nil {
		return 0, fmt.Errorf("sweep gateway events: %w", err)
	}
	return tag.RowsAffected(), nil
}
