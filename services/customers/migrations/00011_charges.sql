-- +goose Up
-- The payments by card that have been put on invoices, so that each is put there once.
create table charges (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              text collate "C" not null,        -- the gateway's, pi_…
    booking_id      uuid        not null,
    amount          bigint      not null,
    unapplied       bigint      not null,             -- what no invoice took; it stays on the booking
    primary key (tenant_id, livemode, id)
);
select protect('charges');

-- +goose Down
drop table charges;
