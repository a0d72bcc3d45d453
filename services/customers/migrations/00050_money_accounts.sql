-- migrationlint:allow drop-column: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose NO TRANSACTION
-- +goose ENVSUB ON
-- +goose Up
-- The accounts of payments as charges and invoices show them: the money of a booking, or of an invoice without one.
create table if not exists money_accounts (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,             -- of the booking or the invoice
    currency        text        not null,
    returned        bigint      not null,             -- in the smallest unit
    returned_free   bigint      not null default 0,   -- what was handed back outside the gateway of money on no invoice
    version         bigint      not null,             -- the last that was applied
    primary key (tenant_id, livemode, id, currency)
);
select protect('money_accounts');

-- A charge is any payment of an account, which booking_id identifies. Its id is the gateway's, or the uuid of a payment that a client
-- recorded. The amount of such a payment is 0 until payments has recorded it, and after its reversal.
alter table charges
    add column if not exists method       text not null default 'card',
    add column if not exists reference    text,
    add column if not exists paid_at      timestamptz,
    add column if not exists invoice_id   uuid,   -- that the payment names
    -- The request to payments, while its outcome is unknown.
    add column if not exists call_amount  bigint,
    add column if not exists call_attempt integer not null default 0,
    add column if not exists call_since   timestamptz,
    add column if not exists call_until   timestamptz,
    add column if not exists call_next    timestamptz,
    add column if not exists call_request text not null default '',
    add column if not exists call_actor   text not null default '';
drop index concurrently if exists charges_calls;
create index concurrently charges_calls on charges (tenant_id, livemode, booking_id) where call_until is not null;
drop index concurrently if exists charges_unallocated;

-- The account says what credit notes have returned of a charge.
alter table credit_note_refunds drop column if exists known;

-- The version of a charge becomes that of its account.
update charges set version = 0;
insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied, currency, method, reference, paid_at, invoice_id, created_at)
    select p.tenant_id, p.livemode, p.id::text, coalesce(v.booking_id, v.id), case when p.reversed_at is null then p.amount else 0 end, 0,
        v.currency, p.method, p.reference, p.paid_at, v.id, p.paid_at
    from invoice_payments p join invoices v on (v.tenant_id, v.livemode, v.id) = (p.tenant_id, p.livemode, p.invoice_id)
    where p.source = 'manual'
    on conflict do nothing;
update invoice_payments set charge_id = case source when 'manual' then id::text else reference end, charge_part = greatest(1, charge_part)
    where charge_id is null;

-- +goose Down
alter table credit_note_refunds add column if not exists known boolean not null default true;
delete from charges where method <> 'card';
drop index concurrently if exists charges_calls;
create index concurrently charges_unallocated on charges (tenant_id, livemode, booking_id, id) where unapplied > refunded;
alter table charges
    drop column if exists call_actor, drop column if exists call_request, drop column if exists call_next, drop column if exists call_until,
    drop column if exists call_since, drop column if exists call_attempt, drop column if exists call_amount, drop column if exists invoice_id,
    drop column if exists paid_at, drop column if exists reference, drop column if exists method;
drop table if exists money_accounts;
