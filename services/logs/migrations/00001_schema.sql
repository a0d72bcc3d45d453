-- +goose ENVSUB ON
-- +goose Up
-- The log, partitioned by the time in the UUIDv7 of the request, at which it arrived. Each filter has an index.
create table request_logs (
    tenant_id            uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode             boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                   uuid    not null,
    status               integer not null,
    status_class         integer not null, -- the first digit of status
    method               text    not null,
    route                text    not null,
    path                 text    not null,
    query_names          text    not null, -- separated by commas
    code                 text,
    param                text,
    credential_id        text    not null,
    credential_type      text    not null,
    object_id            text,
    duration_ms          bigint  not null,
    client_network       text,
    user_agent           text,
    sdk_version          text,
    idempotency_key_hash bytea,
    replayed             boolean not null,
    primary key (tenant_id, livemode, id)
) partition by range (id);
create index request_logs_status on request_logs (tenant_id, livemode, status, id);
create index request_logs_class on request_logs (tenant_id, livemode, status_class, id);
create index request_logs_code on request_logs (tenant_id, livemode, code, id) where code is not null;
create index request_logs_method on request_logs (tenant_id, livemode, method, id);
create index request_logs_route on request_logs (tenant_id, livemode, route, id);
create index request_logs_credential on request_logs (tenant_id, livemode, credential_id, id);
create index request_logs_object on request_logs (tenant_id, livemode, object_id, id) where object_id is not null;

-- The number of rows of each day, by which the rows of a tenant and mode are bounded.
create table request_log_counts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    day       date    not null,
    rows      bigint  not null,
    primary key (tenant_id, livemode, day)
);
create index request_log_counts_day on request_log_counts (day);

-- The requests of each day, by class, as the gateways counted them: all requests, not only those in the log.
create table request_counts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    day       date    not null,
    class     text    not null,
    requests  bigint  not null,
    primary key (tenant_id, livemode, day, class)
);
create index request_counts_day on request_counts (day);

-- The last day that was measured. Requests of an earlier day that are counted afterwards belong to the next one.
create table request_counts_sealed (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    through   date    not null,
    primary key (tenant_id, livemode)
);

select protect(t) from unnest(array['request_logs', 'request_log_counts', 'request_counts', 'request_counts_sealed']::regclass[]) t;
select open_to_worker('request_logs', 'select, insert, delete'), open_to_worker('request_log_counts', 'select, insert, update, delete'),
       open_to_worker('request_counts', 'select, insert, update, delete'), open_to_worker('request_counts_sealed', 'select');
grant insert on inbox to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- uuid_floor is the least UUIDv7 of a millisecond.
create function uuid_floor(at timestamptz) returns uuid language sql immutable parallel safe
    as $$ select (lpad(to_hex(ceil(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

-- uuid_day is the day, in UTC, of the time in a UUIDv7.
create function uuid_day(id uuid) returns date language sql immutable parallel safe
    as $$ select date '1970-01-01' + (('x' || lpad(replace(left(id::text, 13), '-', ''), 16, '0'))::bit(64)::bigint / 86400000)::integer $$;

-- keep_partitions creates the partitions of the days from a time that is kept to one that comes, and drops those of earlier days.
-- A statement waits for the drop at most 100 ms: a partition that is read for longer, as by a dump, is left to the next call. It
-- returns the number of partitions that are left.
-- +goose StatementBegin
create function keep_partitions(kept timestamptz, until timestamptz) returns integer
language plpgsql volatile security definer set search_path = public, pg_temp set timezone = 'UTC' set lock_timeout = '100ms' as $$
declare
    day   timestamptz := date_trunc('day', kept);
    child text;
    remaining integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('keep_partitions'));
    while day <= until loop
        child := format('request_logs_%s', to_char(day, 'YYYYMMDD'));
        if to_regclass(child) is null then
            execute format('create table %I (like request_logs including defaults including constraints)', child);
            execute format('alter table request_logs attach partition %I for values from (%L) to (%L)',
                child, uuid_floor(day), uuid_floor(day + interval '1 day'));
        end if;
        day := day + interval '1 day';
    end loop;
    for child in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'request_logs'::regclass and to_date(right(c.relname, 8), 'YYYYMMDD') < kept::date order by 1 loop
        begin
            execute format('drop table %I', child);
        exception when lock_not_available then
            remaining := remaining + 1;
        end;
    end loop;
    delete from request_log_counts c where c.day < kept::date;
    return remaining;
end $$;
-- +goose StatementEnd
revoke execute on function keep_partitions from public;
-- +goose StatementBegin
do $$ begin
    execute format('grant execute on function keep_partitions to %I', worker_role());
    execute format('grant create on schema public to %I', current_user); -- the role that the function runs as
end $$;
-- +goose StatementEnd
select keep_partitions(now() - interval '7 days', now() + interval '3 days');

-- +goose ENVSUB ON
-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
drop table request_counts_sealed, request_counts, request_log_counts, request_logs;
drop function keep_partitions, uuid_day, uuid_floor;
