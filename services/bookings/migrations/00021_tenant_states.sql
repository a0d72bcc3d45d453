-- +goose Up
-- The states of tenants, from identity's events. A tenant without a row is active.
create table tenant_states (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    status    text    not null,
    version   bigint  not null, -- of the tenant
    primary key (tenant_id, livemode)
);
select protect('tenant_states');

-- +goose Down
drop table tenant_states;
