package store

import (
	"cmp"
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

// EventDue is an intent with events that are to be worked off.
type EventDue struct {
	Home

	AccountID domain.AccountID
	Intent    domain.GatewayID
}

// EventsDue returns the intents of up to limit events of all tenants and modes but those of except that are due, the oldest first; tx
// has the worker role.
func EventsDue(ctx context.Context, tx pg.Tx, now time.Time, except []Home, limit int) ([]EventDue, error) {
	tenants, modes := homes(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[EventDue], `
		select e.tenant_id, e.livemode, e.account_id, e.intent from gateway_events e
		where e.due_at is not null and e.due_at <= $3`+outside("e")+` order by e.due_at limit $4`, tenants, modes, now, limit)
}

// Taken are events about an intent that a process has taken.
type Taken struct {
	Events []domain.Event // none when other processes have them or they are worked off
	Intent *domain.Intent // nil when it is not known

	account *domain.Account
	closed  error
}

// Account is that of the intent.
func (t Taken) Account() (domain.Account, error) {
	if t.closed != nil || t.account == nil {
		return domain.Account{}, cmp.Or(t.closed, error(domain.ErrNotConfigured))
	}
	return *t.account, nil
}

// TakeEvents takes up to limit events about an intent that are due, until a time, and begins the read of the intent that they ask for.
func (s Accounts) TakeEvents(ctx context.Context, tx pg.Tx, due EventDue, now, until time.Time, limit int) (out Taken, err error) {
	b := &pgx.Batch{}
	b.Queue(`
		update gateway_events e set due_at = @until, tries = e.tries + 1
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = any(array(
			select d.id from gateway_events d
			where d.tenant_id = @tenant and d.livemode = @live and d.account_id = @account and d.intent = @intent
				and d.due_at is not null and d.due_at <= @now
			order by d.id limit @limit for update skip locked))
		returning e.account_id, e.id, e.type, e.intent, coalesce(e.refund, ''), e.tries, e.received_at`,
		pg.Args{"account": due.AccountID, "intent": string(due.Intent), "now": now, "until": until, "limit": limit})
	b.Queue(beginRead+`p.gateway_id = @intent returning `+intentColumns, pg.Args{"intent": string(due.Intent)})
	b.Queue(oneAccount+`a.id = (select p.account_id from payment_intents p
		where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = @intent)`, pg.Args{"intent": string(due.Intent)})
	res := tx.SendBatch(ctx, b)
	out.Events, err = pg.Next(res, func(row pgx.CollectableRow) (e domain.Event, err error) {
		err = row.Scan(&e.AccountID, &e.ID, &e.Type, &e.Intent, &e.Refund, &e.Tries, &e.ReceivedAt)
		return e, err
	})
	if err == nil {
		out.Intent, err = pg.NextOne(res, scanIntent)
	}
	if err == nil {
		out.account, out.closed = pg.NextOne(res, s.scan(ctx))
	}
	if closed := res.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return Taken{}, fmt.Errorf("take events: %w", err)
	}
	return out, nil
}

// SaveEvents notes when events of an account are tried again, and which are worked off.
func SaveEvents(ctx context.Context, tx pg.Tx, account domain.AccountID, list []domain.Event) error {
	known, due := make([]string, len(list)), make([]*time.Time, len(list))
	for i, e := range list {
		known[i], due[i] = e.ID, e.DueAt
	}
	_, err := tx.Exec(ctx, `
		update gateway_events e set due_at = s.due_at from unnest(@ids::text[], @due::timestamptz[]) s (id, due_at)
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = s.id`,
		pg.Args{"account": account, "ids": known, "due": due})
	if err != nil {
		return fmt.Errorf("save %d events: %w", len(list), err)
	}
	return nil
}
