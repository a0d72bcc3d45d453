-- +goose Up
-- Managed servers grant neither superuser nor BYPASSRLS. The owner of a table under row-level security sees its rows by a policy instead.

-- hidden_tables returns the tables that can hide rows from their owner: tables under forced row-level security without the policy of
-- open_to_owner, or with a restrictive policy. Attributes of the owner do not count.
-- +goose StatementBegin
create function hidden_tables() returns setof text language sql stable set search_path = public, pg_temp as $$
    select c.oid::regclass::text from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relrowsecurity and c.relforcerowsecurity
      and (exists (select from pg_policy p where p.polrelid = c.oid and not p.polpermissive)
           or not exists (select from pg_policy p where p.polrelid = c.oid and p.polpermissive and p.polcmd = '*' and c.relowner = any(p.polroles)
               and pg_get_expr(p.polqual, p.polrelid) = 'true' and pg_get_expr(p.polwithcheck, p.polrelid) = 'true'))
    order by 1
$$;
-- +goose StatementEnd

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
-- +goose StatementBegin
create or replace function protect(t regclass) returns void language plpgsql as $$
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
revoke execute on function open_to_owner from public;

-- +goose StatementBegin
create or replace function erase_tenant(erased uuid, most integer) returns bigint
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

select open_to_owner(t::regclass) from hidden_tables() t;

-- +goose Down
-- +goose StatementBegin
create or replace function erase_tenant(erased uuid, most integer) returns bigint
language plpgsql volatile security definer set search_path = public, pg_temp as $$
declare
    t record;
    n bigint;
    total bigint := 0;
    referenced text;
begin
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
-- +goose StatementBegin
create or replace function protect(t regclass) returns void language plpgsql as $$
begin
    execute format('alter table %s enable row level security', t);
    execute format('alter table %s force row level security', t);
    execute format('create policy tenant on %s to %I using (
            tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid
        and livemode = nullif(current_setting(''app.livemode'', true), '''')::boolean)', t, app_role());
    execute format('grant select, insert, update, delete on %s to %I', t, app_role());
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
do $$
declare
    t regclass;
begin
    for t in select p.polrelid from pg_policy p where p.polname = 'owner' and p.polrelid in (
        select c.oid from pg_class c where c.relnamespace = 'public'::regnamespace) loop
        execute format('drop policy owner on %s', t);
    end loop;
end $$;
-- +goose StatementEnd
drop function open_to_owner, hidden_tables;
