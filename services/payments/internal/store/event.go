package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// PutEvent stores an event that this service created for itself. It stores the event once, however often it is called.
func PutEvent(ctx context.Context, tx pg.Tx, e domain.Event, now time.Time) error {
	return pg.Exec(ctx, tx, "store event", putEvent+`select * from event on conflict do nothing`, eventArgs(e, now))
}

// ReceiveEvent stores an event of the gateway once, however often it arrives. It returns domain.ErrEventsWaiting if the account has
// too many unprocessed events. Events that arrive at the same moment can exceed the limit.
func ReceiveEvent(ctx context.Context, tx pg.Tx, e domain.Event, now time.Time) error {
	args := eventArgs(e, now)
	args["limit"] = domain.EventsWaiting
	_, err := pg.One(ctx, tx, pgx.RowTo[bool], domain.ErrEventsWaiting, `
		with waiting as (select count(*) as n from (select from gateway_events w
			where w.tenant_id = @tenant and w.livemode = @live and w.account_id = @account and w.due_at is not null limit @limit) w),
		kept as (`+putEvent+`select event.* from event, waiting where waiting.n < @limit on conflict do nothing)
		select true from waiting where waiting.n < @limit`, args)
	return err
}

const putEvent = `
	insert into gateway_events (tenant_id, livemode, account_id, id, type, intent, refund, received_at, due_at)
	with event as (select @tenant::uuid, @live::boolean, @account::uuid, @id::text, @type::text, nullif(@intent::text, ''),
		nullif(@refund::text, ''), @now::timestamptz, @due::timestamptz) `

func eventArgs(e domain.Event, now time.Time) pg.Args {
	var due *time.Time
	if e.Intent != "" {
		due = &now
	}
	return pg.Args{
		"account": e.AccountID, "id": e.ID, "type": e.Type, "intent": string(e.Intent), "refund": e.Refund, "now": now, "due": due,
	}
}

// TrimEvents deletes about 10,000 of the processed events of an account, except the newest ones. retained is how many of them to
// keep. more reports that others may be left. It deletes a range of times, which an index finds regardless of the planner's
// statistics about the table.
func TrimEvents(ctx context.Context, tx pg.Tx, account domain.AccountID, retained int) (more bool, err error) {
	const batch = 10_000
	n, err := pg.Affect(ctx, tx, "trim events", `
		with old as (select d.received_at from gateway_events d
			where d.tenant_id = @tenant and d.livemode = @live and d.account_id = @account and d.due_at is null
			order by d.received_at desc offset @kept limit @batch)
		delete from gateway_events e
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.due_at is null
			and e.received_at between (select min(o.received_at) from old o) and (select max(o.received_at) from old o)`, pg.Args{"account": account, "kept": retained, "batch": batch})
	return n >= batch, err
}

// EventDue is an intent with events that are due to be processed.
type EventDue struct {
	operation.Owner

	AccountID domain.AccountID
	Intent    domain.GatewayID
}

// EventsDue finds due events, and returns their intents.
var EventsDue = operation.FindDue[EventDue](
	`select e.tenant_id, e.livemode, e.account_id, e.intent from gateway_events e where e.due_at is not null and e.due_at <= $3`, "e", "e.due_at")

// Taken contains events about an intent that a process has taken.
type Taken struct {
	Events []domain.Event // none if other processes hold them or they are processed
	Intent *domain.Intent // nil if it is unknown

	account *domain.Account
	closed  error
}

// Account returns the account of the intent.
func (t Taken) Account() (domain.Account, error) {
	if t.closed != nil || t.account == nil {
		return domain.Account{}, cmp.Or(t.closed, error(domain.ErrNotConfigured))
	}
	return *t.account, nil
}

// TakeEvents takes up to limit due events about an intent until the given time, and begins the read of the intent that they
// require.
func (s Accounts) TakeEvents(ctx context.Context, tx pg.Tx, due EventDue, now, until time.Time, limit int) (out Taken, err error) {
	args := pg.Args{"account": due.AccountID, "intent": string(due.Intent), "now": now, "until": until, "limit": limit}
	b := &pgx.Batch{}
	b.Queue(`
		update gateway_events e set due_at = @until, tries = e.tries + 1
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = any(array(
			select d.id from gateway_events d
			where d.tenant_id = @tenant and d.livemode = @live and d.account_id = @account and d.intent = @intent
				and d.due_at is not null and d.due_at <= @now
			order by d.id limit @limit for update skip locked))
		returning e.account_id, e.id, e.type, e.intent, coalesce(e.refund, '') as refund, e.tries, e.received_at`, args).
		Query(pg.ListInto(&out.Events, pgx.RowToStructByNameLax[domain.Event]))
	b.Queue(beginRead+`p.gateway_id = @intent returning `+intents.Columns, args).Query(pg.FirstInto(&out.Intent, intents.Scan))
	b.Queue(accounts.Own+`a.id = (select p.account_id from payment_intents p
		where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = @intent)`, args).Query(func(rows pgx.Rows) error {
		out.closed = pg.FirstInto(&out.account, s.scan(ctx))(rows)
		return nil
	})
	return pg.SendFor(ctx, tx, b, "take events", &out)
}

// SaveEvents writes when to retry events of an account and which ones are processed. It deletes dropped events.
func SaveEvents(ctx context.Context, tx pg.Tx, account domain.AccountID, list []domain.Event) error {
	known, due, dropped := make([]string, len(list)), make([]*time.Time, len(list)), make([]string, 0, len(list))
	for i, e := range list {
		if known[i], due[i] = e.ID, e.DueAt; e.Dropped {
			dropped = append(dropped, e.ID)
		}
	}
	args := pg.Args{"account": account, "ids": known, "due": due, "dropped": dropped}
	b := &pgx.Batch{}
	b.Queue(`
		update gateway_events e set due_at = s.due_at from unnest(@ids::text[], @due::timestamptz[]) s (id, due_at)
		where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = s.id`, args)
	if len(dropped) > 0 {
		b.Queue(`delete from gateway_events e
			where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = any(@dropped::text[])`, args)
	}
	return pg.Send(ctx, tx, b, fmt.Sprintf("save %d events", len(list)))
}
