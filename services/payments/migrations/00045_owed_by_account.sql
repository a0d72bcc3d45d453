-- migrationlint:allow drop-column: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- The booking's account of money when the booking was cancelled, as bookings reports it. What the account has returned since then counts
-- toward what is owed, and payments that it has received since then are late.
alter table automatic_refunds
    add column account_version  bigint not null default 0,
    add column account_returned bigint not null default 0; -- what that version had returned, including refunds that had begun

-- The version of the booking's account since which a part of a refund counts as returned, and the last version before it no longer counts,
-- because it has failed.
alter table refund_allocations
    add column held_version     bigint not null default 0,
    add column released_version bigint;
-- The version of the booking's account when the movement was recorded, before its own change.
alter table ledger_entries add column money_version bigint not null default 0;

-- For the refunds that are owed so far, what counted until now still counts. All payments count as received in time.
update automatic_refunds o
set account_version = 9223372036854775807, account_returned = greatest(0, a.returned + a.held - c.returned - greatest(0, c.elsewhere - w.elsewhere))
from automatic_refunds w
join money_accounts a on (a.tenant_id, a.livemode, a.id, a.currency) = (w.tenant_id, w.livemode, w.booking_id, w.currency)
cross join lateral (
    select coalesce(sum((select sum(l.amount) from refund_allocations l
            join refunds r on (r.tenant_id, r.livemode, r.id) = (l.tenant_id, l.livemode, l.refund_id)
            where (l.tenant_id, l.livemode, l.intent_id) = (p.tenant_id, p.livemode, p.id) and r.created_at >= w.since
                and l.status in ('creating', 'pending', 'requires_action', 'succeeded'))), 0) as returned,
        coalesce(sum(greatest(p.refunded_elsewhere, p.refunded - p.refund_reserved)), 0) as elsewhere
    from payment_intents p where (p.tenant_id, p.livemode, p.booking_id, p.currency) = (a.tenant_id, a.livemode, a.id, a.currency)) c
where o.cause = 'cancelled' and (w.tenant_id, w.livemode, w.cause, w.subject) = (o.tenant_id, o.livemode, o.cause, o.subject);

alter table automatic_refunds drop column since, drop column elsewhere;
alter table booking_settlements drop column elsewhere;

-- +goose Down
alter table ledger_entries drop column money_version;
alter table refund_allocations drop column held_version, drop column released_version;
alter table booking_settlements add column elsewhere json;
alter table automatic_refunds
    add column since timestamptz not null default '1970-01-01 00:00:00+00', add column elsewhere bigint not null default 0,
    drop column account_returned, drop column account_version;
