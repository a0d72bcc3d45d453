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
    resource_id   text        not null default '', -- erasure finds the stored responses about one resource by it
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

-- How many partitions keys are distributed over: of the relays ('relays'), and of a topic that was increased (its name). The relay
-- reads it in the transaction that sends the rows. Only the commands outbox and topics write it, while no relay sends.
create table outbox_partitions (
    name       text    primary key,
    partitions integer not null check (partitions between 1 and 1024),
    check (name <> 'relays' or partitions % 8 = 0)
);
insert into outbox_partitions values ('relays', 64);

create table inbox (
    tenant_id  uuid        not null,
    livemode   boolean     not null,
    consumer   text        not null,
    event_id   uuid        not null,
    expires_at timestamptz not null,
    primary key (tenant_id, livemode, consumer, event_id)
);
create index inbox_expiry on inbox (expires_at);

-- The tenants whose rows are being erased, or were. A row stays forever, so that nothing that arrives later brings rows of the tenant
-- back: transactions of the tenant see nothing and write nothing (libs/pg), and consumers drop its events (libs/erasure).
create table tenant_erasures (
    tenant_id  uuid        primary key,
    started_at timestamptz not null default clock_timestamp(),
    erased_at  timestamptz, -- null: rows can be left
    deleted    bigint      not null default 0 -- number of deleted rows
);
create index tenant_erasures_started on tenant_erasures (started_at);

-- One row. A restored database keeps it. The id is that of the platform whose Kafka topics the service uses (libs/kafkax), so that
-- another platform cannot use the same topics. The version is that of the executable that migrated last, null if it has none.
create table installation (
    single  boolean primary key default true check (single),
    id      uuid    not null default gen_random_uuid(),
    version text
);
insert into installation default values;

grant select on tenant_erasures to "${APP_ROLE}";
grant select, insert, update on tenant_erasures to "${WORKER_ROLE}";
grant select on outbox_partitions, installation to "${WORKER_ROLE}";

create function app_role() returns text language sql immutable as 'select ''${APP_ROLE}''';
create function worker_role() returns text language sql immutable as 'select ''${WORKER_ROLE}''';

-- +goose ENVSUB OFF
-- hidden_tables returns the tables that can hide rows from their owner: tables under forced row-level security without the policy of
-- open_to_owner, or with a restrictive policy. Attributes of the owner do not count, because managed servers grant neither superuser nor
-- BYPASSRLS.
create function hidden_tables() returns setof text language sql stable set search_path = public, pg_temp as $$
    select c.oid::regclass::text from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relrowsecurity and c.relforcerowsecurity
      and (exists (select from pg_policy p where p.polrelid = c.oid and not p.polpermissive)
           or not exists (select from pg_policy p where p.polrelid = c.oid and p.polpermissive and p.polcmd = '*' and c.relowner = any(p.polroles)
               and pg_get_expr(p.polqual, p.polrelid) = 'true' and pg_get_expr(p.polwithcheck, p.polrelid) = 'true'))
    order by 1
$$;

-- open_to_owner lets the owner of a table under row-level security see and write all of its rows. protect calls it, and migrate calls it
-- for each table of hidden_tables.
-- +goose StatementBegin
create function open_to_owner(t regclass) returns void language plpgsql as $$
begin
    execute format('drop policy if exists owner on %s', t);
    execute format('create policy owner on %s to %I using (true) with check (true)', t,
        (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = t));
end $$;
-- +goose StatementEnd

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
    perform open_to_owner(t);
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

select protect(t), open_to_worker(t, 'select, update, delete')
from unnest(array['idempotency_keys', 'outbox', 'inbox']::regclass[]) t;

-- oldest_write is a time before which no write can come any more: when the oldest open transaction of the services began, or now. A
-- transaction that is not seen here yet takes its times after this. Only a role with the roles' privileges can see when their transactions
-- began, hence the check and "security definer". A role can have several logins that are members of it, so that its password can be changed
-- without an interruption. The owner must be a member of each login. Of the other roles only transactions that have written count, so that
-- neither a backup nor a relay that waits for Kafka holds a list up. They must take their times after their first write.
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
          and (backend_xid is not null or usename = public.app_role() or usesysid in (
              select m.member from pg_auth_members m join pg_roles app on app.oid = m.roleid join pg_roles login on login.oid = m.member
              where app.rolname = public.app_role() and login.rolname <> current_user))));
end $$;
-- +goose StatementEnd

-- erase_tenant deletes up to most rows of a tenant, of both modes, and returns their number: of each table with a column tenant_id, and
-- of partitions, the referencing tables first. It is the only way to delete from append-only tables. It only deletes rows of a tenant that
-- tenant_erasures contains.
-- +goose StatementBegin
create function erase_tenant(erased uuid, most integer) returns bigint
language plpgsql volatile security definer set search_path = public, pg_temp as $$
declare
    t record;
    n bigint;
    total bigint := 0;
    referenced text;
    hidden text;
begin
    select string_agg(h, ', ') into hidden from hidden_tables() h;
    if hidden is not null then
        raise exception 'the owner of % cannot see all rows there, so an erasure would leave rows: run migrate', hidden;
    end if;
    perform from tenant_erasures e where e.tenant_id = erased for no key update; -- one process at a time
    if not found then
        raise exception 'tenant % is not being erased', erased;
    end if;
    perform set_config('app.erasing', 'on', true);
    for t in
        with recursive tables as (
            select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
            where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'tenant_erasures'
        ), edges as (
            select distinct k.conrelid as child, k.confrelid as parent from pg_constraint k where k.contype = 'f' and k.conrelid <> k.confrelid
        ), depths as (
            select oid, 0 as depth from tables
            union
            select e.parent, d.depth + 1 from depths d join edges e on e.child = d.oid where d.depth < 32
        )
        select d.oid::regclass::text as name from depths d join tables using (oid) group by d.oid order by max(d.depth), 1
    loop
        exit when total >= most;
        begin
            execute format('delete from only %1$s where ctid = any(array(select ctid from only %1$s where tenant_id = $1 limit $2))', t.name)
                using erased, most - total;
            get diagnostics n = row_count;
            total := total + n;
        exception when foreign_key_violation then
            referenced := t.name; -- by a trigger; the other table comes first in a later call
        end;
    end loop;
    perform set_config('app.erasing', '', true);
    if total = 0 and referenced is not null then
        raise exception 'rows of % are referenced by rows that no erasure deletes', referenced;
    end if;
    update tenant_erasures e set deleted = e.deleted + total where e.tenant_id = erased and total > 0;
    return total;
end $$;
-- +goose StatementEnd

-- is_erasing reports whether a delete from a table is one of erase_tenant, for triggers of append-only tables. No other role than the
-- owner of the table can delete from it.
create function is_erasing(t oid) returns boolean language sql stable as $$
    select coalesce(current_setting('app.erasing', true), '') = 'on'
       and current_user = (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = t)
$$;

-- +goose ENVSUB ON
revoke execute on function protect, open_to_worker, open_to_owner, oldest_write, erase_tenant from public;
grant execute on function oldest_write to "${APP_ROLE}";
grant execute on function erase_tenant to "${WORKER_ROLE}";

-- +goose Down
drop table installation, tenant_erasures, inbox, outbox_partitions, outbox, idempotency_keys;
drop function is_erasing, erase_tenant, oldest_write, open_to_worker, protect, open_to_owner, hidden_tables, worker_role, app_role;
