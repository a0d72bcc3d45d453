-- +goose ENVSUB ON
-- +goose Up
-- What a tenant used in a mode on a day, in UTC. A row is written once.
create table usage_days (
    tenant_id         uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode          boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    day               date        not null,
    requests_read     bigint      not null,
    requests_write    bigint      not null,
    requests_export   bigint      not null,
    requests_stream   bigint      not null,
    requests_rejected bigint      not null,
    bookings          bigint      not null,
    events            bigint      not null,
    deliveries        bigint      not null,
    stored_rows       bigint, -- null: a service could not count them in time
    stored_bytes      bigint,
    payments          jsonb       not null, -- domain.Volume by currency
    measured_at       timestamptz not null,
    primary key (tenant_id, livemode, day)
);
create index usage_days_day on usage_days (day, tenant_id, livemode);
select protect('usage_days');
revoke update, delete on usage_days from "${APP_ROLE}";
select open_to_worker('usage_days', 'select, insert');

-- The days, in order: how far the recording of each has come. At most one is not complete.
create table usage_collections (
    day          date        primary key,
    cursor       uuid        not null default '00000000-0000-0000-0000-000000000000', -- the last tenant with rows
    rows         bigint      not null default 0,
    leased_until timestamptz, -- when another process can take it; null: no process has it
    completed_at timestamptz  -- null: not all tenants have rows
);
grant select, insert, update on usage_collections to "${WORKER_ROLE}";
grant insert on outbox to "${WORKER_ROLE}";

-- +goose Down
revoke insert on outbox from "${WORKER_ROLE}";
drop table usage_collections, usage_days;
