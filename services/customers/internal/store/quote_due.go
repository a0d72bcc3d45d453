package store

import (
	"context"
	"errors"
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

// QuotesLeft returns up to limit quotes of all tenants and modes whose accept a worker has to resume, oldest first. It skips the
// owners in except. tx has the worker role.
func QuotesLeft(ctx context.Context, tx pg.Tx, real time.Time, except []operation.Owner, limit int) ([]Left[domain.QuoteID], error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[Left[domain.QuoteID]], `
		select q.tenant_id, q.livemode, q.id from quotes q
		where q.accept_until is not null and q.accept_next <= $3`+operation.Outside("q")+`
		order by q.accept_next, q.id limit $4`, tenants, modes, real, limit)
}

// UnfinishedAccepts counts the accepts of quotes, of all tenants and modes, that their first process abandoned. tx has the worker
// role.
func UnfinishedAccepts(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select q.accept_since as since, q.accept_until as until from quotes q where q.accept_until is not null) step`+left, real, domain.Lease)
}

// UnfinishedConversions is UnfinishedAccepts for the conversions of leads.
func UnfinishedConversions(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select l.converting_since as since, l.converting_until as until from leads l where l.converting_until is not null) step`+left, real, domain.Lease)
}

const (
	unfinished = `select count(*)::int as count,
		coalesce(extract(epoch from $1::timestamptz - min(since)), 0)::float8 as age from (`
	left = ` where least(until, since + $2::interval) <= $1::timestamptz`
)

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
	b := &pgx.Batch{}
	b.Queue(oneQuote+lock, pg.Args{"id": id})
	b.Queue(testclock.Known, pg.Args{})
	res := tx.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, res.Close()) }()
	found, err := pg.NextOne(res, scanQuote)
	if err != nil {
		return domain.Quote{}, testclock.Clock{}, false, fmt.Errorf("lock quote: %w", err)
	}
	known, err := pg.NextOne(res, pgx.RowToStructByName[testclock.Clock])
	if err != nil {
		return domain.Quote{}, testclock.Clock{}, false, fmt.Errorf("test clock: %w", err)
	}
	if known != nil {
		clock = *known
	}
	if found == nil {
		return domain.Quote{}, clock, false, nil
	}
	return *found, clock, true, nil
}
