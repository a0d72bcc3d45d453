-- migrationlint:allow unreadable: it only grants rights to roles whose names are settings
-- +goose Up
-- The tenants whose rows are being erased, or were. A row stays forever, so that nothing that arrives later brings rows of the tenant
-- back: transactions of the tenant see nothing and write nothing (libs/pg), and consumers drop its events (libs/erasure).
create table tenant_erasures (
    tenant_id  uuid        primary key,
    started_at timestamptz not null default clock_timestamp(),
    erased_at  timestamptz, -- null: rows can be left
    deleted    bigint      not null default 0 -- number of deleted rows
);
create index tenant_erasures_started on tenant_erasures (started_at);

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

-- is_erasing reports whether a delete from a table is one of erase_tenant, for triggers of append-only tables. No other role than the
-- owner of the table can delete from it.
-- +goose StatementBegin
create function is_erasing(t oid) returns boolean language sql stable as $$
    select coalesce(current_setting('app.erasing', true), '') = 'on'
       and current_user = (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = t)
$$;
-- +goose StatementEnd

revoke execute on function erase_tenant from public;
-- +goose StatementBegin
do $$ begin
    execute format('grant select on tenant_erasures to %I', app_role());
    execute format('grant select, insert, update on tenant_erasures to %I', worker_role());
    execute format('grant execute on function erase_tenant to %I', worker_role());
end $$;
-- +goose StatementEnd

-- +goose Down
drop function erase_tenant, is_erasing;
drop table tenant_erasures;
