package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
)

// QuoteDue is a quote for which the time has come that a worker looks for.
type QuoteDue struct {
	TenantID ids.Tenant
	Livemode bool
	ID       domain.QuoteID
	At       time.Time
}

// Each arm reads its own index from where the page starts: quotes by real time, and those of each frozen clock.
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

// LapsedQuotes returns up to limit quotes of all tenants and modes that have expired, oldest first, behind after; tx has the
// worker role.
func LapsedQuotes(ctx context.Context, tx pg.Tx, real time.Time, after QuoteDue, limit int) ([]QuoteDue, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[QuoteDue], lapsedQuotes, real, after.At, after.ID.UUID(), limit)
}

// QuotesLeft returns up to limit quotes of all tenants and modes whose accept is to be resumed, oldest first, behind after; tx
// has the worker role.
func QuotesLeft(ctx context.Context, tx pg.Tx, real time.Time, after QuoteDue, limit int) ([]QuoteDue, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[QuoteDue], `
		select q.tenant_id, q.livemode, q.id, q.accept_next as at from quotes q
		where q.accept_until is not null and q.accept_next <= $1 and (q.accept_next, q.id) > ($2, $3::uuid)
		order by q.accept_next, q.id limit $4`, real, after.At, after.ID.UUID(), limit)
}

// Unfinished counts the accepts of quotes and the conversions of leads, of all tenants and modes, whose first process has left
// them; tx has the worker role.
func Unfinished(ctx context.Context, tx pg.Tx, real time.Time) (quotes, leads int, err error) {
	type counts struct{ Quotes, Leads int }
	got, err := pg.One(ctx, tx, pgx.RowToStructByName[counts], nil, `
		select (select count(*)::int from quotes q where q.accept_until is not null and q.accept_until <= $1) as quotes,
			(select count(*)::int from leads l
				where l.converting_until is not null and (l.converting_until <= $1 or l.converting_tries > 1)) as leads`, real)
	return got.Quotes, got.Leads, err
}

// LockFreeQuote locks a quote for a worker, and reads the clock that its expiry goes by; false when it is gone, or when somebody
// else has it. The clock is read last: it is then at least as new as the one by which the quote was sent.
func LockFreeQuote(ctx context.Context, tx pg.Tx, id domain.QuoteID) (q domain.Quote, clock testclock.Clock, ok bool, err error) {
	b := &pgx.Batch{}
	b.Queue(oneQuote+` for update skip locked`, pg.Args{"id": id})
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
