-- +goose ENVSUB ON
-- +goose Up
create table idempotency_keys (
    tenant_id     uuid        not null,
    livemode      boolean     not null,
    credential_id text        not null,
    key           text        not null,
    fingerprint   bytea       not null,
    status        integer,
    location      text        not null default '',
    etag          text        not null default '',
    resource_id   text        not null default '', -- erasure finds the answers about one resource by it
    secret        boolean     not null default false,
    body          bytea,
    expires_at    timestamptz not null,
    primary key (tenant_id, livemode, credential_id, key)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at);
create index idempotency_keys_resource on idempotency_keys (tenant_id, livemode, resource_id);

-- Rows leave this table in the transaction that has published them.
create table outbox (
    tenant_id    uuid        not null,
    livemode     boolean     not null,
    seq          bigint      generated always as identity,
    id           uuid        not null,
    topic        text        not null,
    aggregate_id text        not null,
    hash         integer     not null,
    message      bytea       not null,
    traceparent  text        not null default '',
    created_at   timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id)
);
create index outbox_order on outbox (seq);

create table inbox (
    tenant_id  uuid        not null,
    livemode   boolean     not null,
    consumer   text        not null,
    event_id   uuid        not null,
    expires_at timestamptz not null,
    primary key (tenant_id, livemode, consumer, event_id)
);
create index inbox_expiry on inbox (expires_at);

create function app_role() returns text language sql immutable as 'select ''${APP_ROLE}''';
create function worker_role() returns text language sql immutable as 'select ''${WORKER_ROLE}''';

-- +goose ENVSUB OFF
-- protect puts a table under row-level security: a caller sees the rows of its tenant and mode only.
-- +goose StatementBegin
create function protect(t regclass) returns void language plpgsql as $$
begin
    execute format('alter table %s enable row level security', t);
    execute format('alter table %s force row level security', t);
    execute format('create policy tenant on %s to %I using (
            tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid
        and livemode = nullif(current_setting(''app.livemode'', true), '''')::boolean)', t, app_role());
    execute format('grant select, insert, update, delete on %s to %I', t, app_role());
end $$;
-- +goose StatementEnd

-- open_to_worker lets the worker role see all tenants in a table: for the relay, sweepers and expiry only.
-- +goose StatementBegin
create function open_to_worker(t regclass, verbs text) returns void language plpgsql as $$
begin
    execute format('create policy worker on %s to %I using (true)', t, worker_role());
    execute format('grant %s on %s to %I', verbs, t, worker_role());
end $$;
-- +goose StatementEnd

-- oldest_write is a time before which no write can come any more: when the oldest open transaction of the
-- services began, or now. A transaction that is not seen here yet takes its times after this. Only a role with
-- the roles' privileges can see when their transactions began, hence the check and "security definer". Of the other
-- roles only transactions that have written count: neither a backup nor a relay that waits for Kafka holds a
-- list up. They must take their times after their first write.
-- +goose StatementBegin
do $$
begin
    if not (pg_has_role(app_role(), 'usage') and pg_has_role(worker_role(), 'usage')) then
        raise exception 'the owner role must be a member of the others: grant %, % to %', app_role(), worker_role(), current_user;
    end if;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create function oldest_write() returns timestamptz language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    present timestamptz := clock_timestamp();
begin
    return least(present, (select min(xact_start) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
          and (backend_xid is not null or usename = public.app_role())));
end $$;
-- +goose StatementEnd

revoke execute on function oldest_write, protect, open_to_worker from public;
-- +goose StatementBegin
do $$ begin execute format('grant execute on function oldest_write to %I', app_role()); end $$;
-- +goose StatementEnd

select protect(t), open_to_worker(t, 'select, update, delete')
from unnest(array['idempotency_keys', 'outbox', 'inbox']::regclass[]) t;

-- +goose Down
drop table inbox, outbox, idempotency_keys;
drop function oldest_write, protect, open_to_worker, app_role, worker_role;
