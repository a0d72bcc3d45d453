package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
)

// QuoteDue is a quote that is due for a worker.
type QuoteDue struct {
	TenantID ids.Tenant
	Livemode bool
	ID       domain.QuoteID
	At       time.Time
}

// Each branch reads its own index from the start of the page: the quotes by real time, and the quotes of each frozen clock.
const lapsedQuotes = `
	(select q.tenant_id, q.livemode, q.id, q.expires_at as at from quotes q
	 where q.status = 'sent' and q.accept_until is null and q.expires_at <= $1 and (q.expires_at, q.id) > ($2, $3::uuid)
	   and (q.livemode or not exists (select from test_clocks c
	        where c.tenant_id = q.tenant_id and c.livemode = q.livemode and c.frozen_at is not null))
	 order by q.expires_at, q.id limit $4)
	union all
	(select c.tenant_id, c.livemode, d.id, d.expires_at from test_clocks c cross join lateral (
	    select q.id, q.expires_at from quotes q
	    where q.tenant_id = c.tenant_id and q.livemode = c.livemode
	      and q.status = 'sent' and q.accept_until is null and q.expires_at <= c.frozen_at and (q.expires_at, q.id) > ($2, $3::uuid)
	    order by q.expires_at, q.id limit $4) d
	 where c.frozen_at is not null)
	order by at, id limit $4`

// LapsedQuotes returns up to limit expired quotes of all tenants and modes after the given one, oldest first. tx has the worker
// role.
func LapsedQuotes(ctx context.Context, tx pg.Tx, real time.Time, after QuoteDue, limit int) ([]QuoteDue, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[QuoteDue], lapsedQuotes, real, after.At, after.ID.UUID(), limit)
}

// LapsedQuotesOfTenant returns up to limit quotes of the caller's tenant and mode that have expired by now, oldest first.
func LapsedQuotesOfTenant(ctx context.Context, q pg.Q, now time.Time, limit int) ([]domain.QuoteID, error) {
	return pg.Many(ctx, q, pgx.RowTo[domain.QuoteID], `
		select q.id from quotes q
		where q.tenant_id = @tenant and q.livemode = @live and q.status = 'sent' and q.accept_until is null and q.expires_at <= @now
		order by q.expires_at, q.id limit @limit`, pg.Args{"now": now, "limit": limit})
}

// Left is an operation that a worker has to resume.
type Left[ID any] struct {
	operation.Owner

	ID ID // of its object
}

// The operations that a worker has to resume, of all tenants and modes, the oldest first.
var (
	QuotesLeft = operation.FindDue[Left[domain.QuoteID]](
		`select q.tenant_id, q.livemode, q.id from quotes q where q.accept_until is not null and q.accept_next <= $3`, "q", "q.accept_next, q.id")
	LeadsLeft = operation.FindDue[Left[domain.LeadID]](
		`select l.tenant_id, l.livemode, l.id from leads l where l.converting_until is not null and l.converting_until <= $3`, "l", "l.converting_until, l.id")
	CreditNotesLeft = operation.FindDue[Left[domain.CreditNoteID]](
		`select n.tenant_id, n.livemode, n.id from credit_notes n where n.call_until is not null and n.call_next <= $3`, "n", "n.call_next, n.id")
	ReceiptsLeft = operation.FindDue[Left[domain.PaymentID]](
		`select c.tenant_id, c.livemode, c.id::uuid as id from charges c where c.call_until is not null and c.call_next <= $3`, "c", "c.call_next, c.id")
)

// The number and the age of the operations, of all tenants and modes, that their first process abandoned: accepts of quotes, conversions of
// leads, refunds of credit notes, and payments that clients record.
var (
	UnfinishedAccepts     = unfinished("quotes", "accept")
	UnfinishedConversions = unfinished("leads", "converting")
	UnfinishedNoteRefunds = unfinished("credit_notes", "call")
	UnfinishedReceipts    = unfinished("charges", "call")
)

// unfinished returns a function that counts operations. Its transaction has the worker role.
func unfinished(table, prefix string) operation.Measure {
	sql := fmt.Sprintf(`select count(*)::int as count, coalesce(extract(epoch from $1::timestamptz - min(%[2]s_since)), 0)::float8 as age from %[1]s
		where %[2]s_until is not null and least(%[2]s_until, %[2]s_since + $2::interval) <= $1::timestamptz`, table, prefix)
	return func(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
		return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, sql, real, domain.Lease)
	}
}

// LockFreeQuote is LockDueQuote for a worker. It does not wait, and also returns false if another transaction has locked the quote.
func LockFreeQuote(ctx context.Context, tx pg.Tx, id domain.QuoteID) (q domain.Quote, clock testclock.Clock, ok bool, err error) {
	return lockQuote(ctx, tx, id, ` for update skip locked`)
}

// LockDueQuote locks a quote for its expiry, and reads the clock by which the quote expires. It returns false if there is none. It
// reads the clock last, so that the clock is at least as new as the one by which the quote was sent.
func LockDueQuote(ctx context.Context, tx pg.Tx, id domain.QuoteID) (q domain.Quote, clock testclock.Clock, ok bool, err error) {
	return lockQuote(ctx, tx, id, ` for update`)
}

func lockQuote(ctx context.Context, tx pg.Tx, id domain.QuoteID, lock string) (q domain.Quote, clock testclock.Clock, ok bool, err error) {
	var found *domain.Quote
	var known *testclock.Clock
	b := &pgx.Batch{}
	b.Queue(`select from quotes q where q.tenant_id = @tenant and q.livemode = @live and q.id = @id`+lock, pg.Args{"id": id}) // as in pg.Table.Get
	b.Queue(quotes.Own+`q.id = @id`+lock, pg.Args{"id": id}).Query(pg.FirstInto(&found, quotes.Scan))
	b.Queue(testclock.Known, pg.Args{}).Query(pg.FirstInto(&known, pgx.RowToStructByName[testclock.Clock]))
	if err := pg.Send(ctx, tx, b, "lock quote"); err != nil {
		return domain.Quote{}, testclock.Clock{}, false, err
	}
	if known != nil {
		clock = *known
	}
	if found == nil {
		return domain.Quote{}, clock, false, nil
	}
	return *found, clock, true, nil
}
