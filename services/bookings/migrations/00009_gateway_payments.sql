-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- A payment at the gateway is known by the gateway's id, and of no invoice. Its amounts follow the newest event.
alter table booking_payments
    add column source   text   not null default 'manual' check (source in ('manual', 'gateway')),
    add column refunded bigint not null default 0 check (refunded >= 0),
    add column version  bigint not null default 0;

-- +goose Down
alter table booking_payments drop column version, drop column refunded, drop column source;
