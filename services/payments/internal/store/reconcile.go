package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// RegisterAccounts adds the accounts of all tenants that are not compared yet. tx has the worker role.
func RegisterAccounts(ctx context.Context, tx pg.Tx, now time.Time) error {
	return pg.Exec(ctx, tx, "accounts to be compared", `
		insert into gateway_reconciliations (tenant_id, livemode, account_id, due_at, finished_at)
		select a.tenant_id, a.livemode, a.id, $1, $1 from gateway_accounts a
		where not exists (select from gateway_reconciliations r where r.tenant_id = a.tenant_id and r.livemode = a.livemode and r.account_id = a.id)
		on conflict do nothing`, now)
}

// ReconciliationDue is an account that must be compared.
type ReconciliationDue struct {
	TenantID  ids.Tenant
	Livemode  bool
	AccountID domain.AccountID
}

// ReconciliationsDue returns up to limit due accounts of all tenants and modes, oldest first. tx has the worker role.
func ReconciliationsDue(ctx context.Context, tx pg.Tx, now time.Time, limit int) ([]ReconciliationDue, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[ReconciliationDue], `
		select r.tenant_id, r.livemode, r.account_id from gateway_reconciliations r where r.due_at <= $1 order by r.due_at limit $2`, now, limit)
}

var reconciliations = pg.NewTable("gateway_reconciliations", "r", nil, func(r *domain.Reconciliation) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"account_id", &r.AccountID},
		Values: pg.F{
			"tries", &r.Tries, "stage", &r.Stage, "cursor", &r.Cursor, "started_at", &r.StartedAt, "events_until", &r.EventsUntil,
			"events_seen", &r.EventsSeen, "events_missed", &r.EventsMissed, "opened_at", &r.OpenedAt,
		},
		Read: pg.F{"due_at", &r.Until},
	}
})

// TakeReconciliation takes an account until a time, and begins its run or continues one. It returns nil if another process holds
// the account.
func TakeReconciliation(ctx context.Context, tx pg.Tx, account domain.AccountID, now, until time.Time) (*domain.Reconciliation, error) {
	return pg.First(ctx, tx, reconciliations.Scan, `update gateway_reconciliations r set due_at = @until, tries = r.tries + 1,
			started_at = coalesce(r.started_at, @now), stage = case when r.started_at is null then @first else r.stage end
		where r.tenant_id = @tenant and r.livemode = @live and r.account_id = @account and r.due_at <= @now
		returning `+reconciliations.Columns, pg.Args{"account": account, "now": now, "until": until, "first": domain.FirstStage})
}

// ErrLeaseLost reports that another process holds an account, or that a repair made its comparison begin again.
var ErrLeaseLost = errors.New("the lease of the comparison was lost")

// SaveReconciliation writes the progress of a run, and when the account can be taken again. finished is the end of the run, or nil
// if it has not ended. It returns the new end of the lease, or ErrLeaseLost, and then writes nothing.
func SaveReconciliation(ctx context.Context, tx pg.Tx, r domain.Reconciliation, due time.Time, finished *time.Time) (time.Time, error) {
	args := reconciliations.Args(r)
	args["due"], args["finished"], args["until"] = due, finished, r.Until
	return pg.One(ctx, tx, pgx.RowTo[time.Time], ErrLeaseLost, `update gateway_reconciliations r set `+reconciliations.Set+`, due_at = @due,
			finished_at = coalesce(@finished, r.finished_at)
		where r.tenant_id = @tenant and r.livemode = @live and r.account_id = @account_id and r.due_at = @until returning r.due_at`, args)
}

// KnownOf reads the stored state of each listed object on a page, in the order of the page, in one statement.
func KnownOf(ctx context.Context, q pg.Q, account domain.AccountID, stage domain.Stage, list []domain.Listed) ([]domain.Known, error) {
	n := len(list)
	objects, intents, movements := make([]string, n), make([]string, n), make([]string, n)
	rows, parts := make([]*[16]byte, n), make([]*[16]byte, n)
	for i, l := range list {
		objects[i], intents[i], movements[i] = l.ID, string(l.Intent), l.Movements
		if id, err := ids.Parse[domain.IntentPrefix](l.Row); err == nil && (stage.Kind() == domain.StageIntents || stage == domain.StageEvents) {
			raw := id.UUID()
			rows[i] = &raw
		}
		if id, err := ids.Parse[domain.AllocationPrefix](l.Row); err == nil && stage.Kind() == domain.StageRefunds {
			raw := id.UUID()
			parts[i] = &raw
		}
	}
	return pg.Many(ctx, q, func(row pgx.CollectableRow) (k domain.Known, err error) {
		p := &k.Intent
		err = row.Scan(&p.ID, &p.Status, &p.Received, &p.Refunded, &p.FailedCharge, &k.RowStatus, &k.PartStatus, &k.PartGatewayID,
			&k.DisputeStatus, &k.MissingMovements, &k.Due, &k.Elsewhere, &k.Received)
		return k, err
	}, `
		select p.id, coalesce(p.status, ''), coalesce(p.received, 0), coalesce(p.refunded, 0), coalesce(p.failed_charge, ''),
			coalesce(r.status, ''), coalesce(a.status, ''), coalesce(a.gateway_id, ''), coalesce(d.status, ''),
			(select count(*)::int from unnest(string_to_array(w.movements, ',')) m where m <> '' and not exists (select from ledger_entries l
				where l.tenant_id = @tenant and l.livemode = @live and l.account_id = @account and l.movement = m)),
			exists (select from gateway_events e where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account
				and e.intent = w.intent and e.due_at is not null),
			coalesce(p.account_id, r.account_id, @account) <> @account,
			exists (select from gateway_events e where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.id = w.object)
		from unnest(@objects::text[], @intents::text[], @movements::text[], @rows::uuid[], @parts::uuid[])
			with ordinality w (object, intent, movements, row, part, n)
		left join payment_intents p on p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = w.intent
		left join payment_intents r on r.tenant_id = @tenant and r.livemode = @live and r.id = w.row
		left join refund_allocations a on a.tenant_id = @tenant and a.livemode = @live and a.id = w.part
		left join disputes d on d.tenant_id = @tenant and d.livemode = @live and d.id = w.object
		order by w.n`, pg.Args{
		"account": account, "objects": objects, "intents": intents, "movements": movements, "rows": rows, "parts": parts,
	})
}

// openObjects contains the statements that select the ids of open objects, by stage.
var openObjects = map[domain.Stage]string{
	domain.StageOpenIntents: `select p.gateway_id from payment_intents p
		where p.tenant_id = @tenant and p.livemode = @live and p.account_id = @account and p.gateway_id > @after and p.created_at < @before
			and p.status in ('requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture', 'processing')
		order by p.gateway_id limit @limit`,
	domain.StageOpenRefunds: `select a.gateway_id from refund_allocations a
		join payment_intents p on p.tenant_id = @tenant and p.livemode = @live and p.id = a.intent_id and p.account_id = @account
		where a.tenant_id = @tenant and a.livemode = @live and a.gateway_id > @after and a.attempted_at < @before
			and a.status in ('pending', 'requires_action')
		order by a.gateway_id limit @limit`,
	domain.StageOpenDisputes: `select d.id from disputes d
		where d.tenant_id = @tenant and d.livemode = @live and d.account_id = @account and d.id > @after and d.opened_at < @before
			and d.closed_at is null
		order by d.id limit @limit`,
}

// OpenObjects reads up to limit of the gateway's ids of an account's open objects, after an id. The objects were begun before a
// time, because the lists contain the later ones.
func OpenObjects(
	ctx context.Context, q pg.Q, account domain.AccountID, stage domain.Stage, before time.Time, after string, limit int,
) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], openObjects[stage], pg.Args{"account": account, "before": before, "after": after, "limit": limit})
}
