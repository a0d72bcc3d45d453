-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- What the gateway says of a charge after it was put on invoices. The newest version of the payment intent decides.
alter table charges
    add column refunded bigint  not null default 0 check (refunded >= 0),
    add column disputed boolean not null default false,
    add column version  bigint  not null default 0;

-- The part of a charge that a payment is: its charge and its place among the parts, from 1. Parts that were written before it
-- was kept have the place 0.
alter table invoice_payments
    add column charge_id   text collate "C",
    add column charge_part integer not null default 0,
    add column refunded    bigint  not null default 0 check (refunded between 0 and amount),
    add column disputed    boolean not null default false;
update invoice_payments set charge_id = reference where source = 'gateway';

-- +goose Down
alter table invoice_payments drop column disputed, drop column refunded, drop column charge_part, drop column charge_id;
alter table charges drop column version, drop column disputed, drop column refunded;
