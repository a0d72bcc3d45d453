-- +goose ENVSUB ON
-- +goose Up
-- What is known here of the tenants' accounts at payment gateways, kept by the events of payments.
create table gateway_accounts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        text collate "C" not null, -- ga_…
    provider  text    not null,
    connected boolean not null,
    version   bigint  not null,
    primary key (tenant_id, livemode, id)
);
select protect('gateway_accounts');
select open_to_worker('gateway_accounts', 'select, insert, update');

-- +goose Down
drop table gateway_accounts;
