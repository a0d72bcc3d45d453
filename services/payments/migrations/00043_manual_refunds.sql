-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- A refund by another method than gateway is money that the operator has handed back. It has no allocations.
alter table refunds
    add column method text not null default 'gateway' check (method in ('gateway', 'cash', 'bank_transfer', 'other')),
    add column reference text,                                -- the operator's own
    add column customer_id uuid;                              -- of the booking, if there are no allocations
create index refunds_customer on refunds (tenant_id, livemode, customer_id) where customer_id is not null;

-- +goose Down
drop index refunds_customer;
alter table refunds drop column method, drop column reference, drop column customer_id;
