-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow column-rewrite: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- What the list of a booking's payments shows, and in which order. The id of the gateway is no uuid, so that each row has one of its own.
alter table booking_payments
    add column id         uuid        not null default gen_random_uuid(),
    add column created_at timestamptz not null default clock_timestamp(),
    add column paid_at    timestamptz,                -- null: an event that has told of it is still to come
    add column disputed   boolean     not null default false,
    add column late       boolean     not null default false; -- its booking was cancelled or had expired when it was counted first
create index booking_payments_listed on booking_payments (tenant_id, livemode, booking_id, created_at desc, id desc);
drop index booking_payments_booking;
alter table bookings
    add column disputed   boolean     not null default false,
    add column refund_due bigint      check (refund_due >= 0); -- by the policy, from the cancellation on; null: it says nothing

-- +goose Down
alter table bookings drop column refund_due, drop column disputed;
create index booking_payments_booking on booking_payments (tenant_id, livemode, booking_id);
drop index booking_payments_listed;
alter table booking_payments drop column late, drop column disputed, drop column paid_at, drop column created_at, drop column id;
