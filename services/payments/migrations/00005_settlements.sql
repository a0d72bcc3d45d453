-- +goose Up
-- Whether it was decided if a payment that has succeeded is refunded because its booking was cancelled or has expired.
alter table payment_intents add column settled boolean not null default false;

-- Bookings that were cancelled or have expired with payments that are not settled, which a worker settles.
create table booking_settlements (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id      uuid        not null,
    tries           integer     not null default 0,
    due_at          timestamptz not null,
    primary key (tenant_id, livemode, booking_id)
);
create index booking_settlements_due on booking_settlements (due_at);

-- The refunds that the platform makes by itself, each once: one for a cancelled booking, and one for a late payment.
create table automatic_refunds (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    cause           text        not null check (cause in ('cancelled', 'late')),
    subject         text collate "C" not null,        -- the id of the booking, or the gateway's of the payment
    refund_id       uuid,                             -- null: nothing was left to refund by card
    wanted          bigint      not null check (wanted > 0),
    created_at      timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, cause, subject)
);

select protect(t) from unnest(array['booking_settlements', 'automatic_refunds']::regclass[]) t;
select open_to_worker('booking_settlements', 'select, insert, update');

-- +goose Down
drop table automatic_refunds, booking_settlements;
alter table payment_intents drop column settled;
