-- +goose ENVSUB ON
-- +goose Up
create table endpoints (
    tenant_id            uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode             boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                   uuid        not null,
    url                  text        not null,
    event_types          text[]      not null, -- {*} is every type
    description          text,
    status               text        not null default 'enabled',
    disabled_reason      text,
    max_in_flight        integer     not null,
    max_per_second       integer     not null,
    consecutive_failures integer     not null default 0,
    version              bigint      not null default 1,
    created_at           timestamptz not null,
    updated_at           timestamptz not null,
    failed_waiting       integer     not null default 0,    -- deliveries that the last disabling by the platform failed
    header_names         text[]      not null default '{}', -- of the endpoint's own headers; can be shown
    sealed_headers       bytea,                             -- their names and values; null: none
    created_by           text,                              -- the credential that created the endpoint
    holder               text,                              -- the credential with which the endpoint ends
    primary key (tenant_id, livemode, id)
);
-- For the worker that disables the endpoints of a grant when the grant ends.
create index endpoints_grant on endpoints (tenant_id, livemode, holder) where status = 'enabled' and holder like 'gr\_%';

create table endpoint_secrets (
    tenant_id   uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    endpoint_id uuid        not null,
    id          uuid        not null, -- a UUIDv7: the newest is the last
    sealed      bytea       not null,
    expires_at  timestamptz,          -- null: the present one
    primary key (tenant_id, livemode, endpoint_id, id),
    foreign key (tenant_id, livemode, endpoint_id) references endpoints on delete cascade
);

-- One row per endpoint: when a delivery is due, and how fast deliveries may start. A process that claims deliveries of
-- an endpoint locks its row, so that the endpoint's limits apply to all processes together.
create table endpoint_queues (
    tenant_id      uuid          not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean       not null default nullif(current_setting('app.livemode', true), '')::boolean,
    endpoint_id    uuid          not null,
    ready_at       timestamptz   not null default 'infinity', -- nothing is due before
    throttled      boolean       not null default false,      -- waits until a delivery in progress has ended
    begun_at       timestamptz[] not null default '{}',       -- when deliveries were begun within the last second,
    begun          integer[]     not null default '{}',       -- and how many at each time
    failed_at      timestamptz[] not null default '{}',       -- the breaker's latest failures,
    failed         uuid[]        not null default '{}',       -- each of another delivery
    deferred_until timestamptz,                               -- first attempts wait until then
    deferrals      integer       not null default 0,          -- since the last success
    slow_until     timestamptz,                               -- a minute after its last attempt that took a second or more; null: no response yet
    primary key (tenant_id, livemode, endpoint_id),
    foreign key (tenant_id, livemode, endpoint_id) references endpoints on delete cascade
) with (fillfactor = 50);
create index endpoint_queues_ready on endpoint_queues (ready_at);

-- The deliveries that have not ended: a row leaves when its delivery has ended, so a claim costs the same however many
-- deliveries the log contains. Of a claimed delivery, due_at is when the claim ends if its process dies.
create table queue (
    tenant_id   uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    endpoint_id uuid        not null,
    claimed     boolean     not null default false,
    first       boolean     not null default true, -- not attempted yet: the breaker defers it
    due_at      timestamptz not null,
    delivery_id uuid        not null,
    event_id    uuid        not null,
    attempts    integer     not null default 0,
    primary key (tenant_id, livemode, endpoint_id, claimed, first, due_at, delivery_id)
);

-- A transaction that queues a delivery inserts a wakeup and does not change the endpoint's queue, because a pass that has
-- locked the endpoint's queue does not see the new row of "queue" yet. A later pass takes the wakeup.
create table wakeups (
    tenant_id   uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    endpoint_id uuid    not null,
    id          bigint  generated always as identity,
    primary key (tenant_id, livemode, endpoint_id, id)
);
create index wakeups_order on wakeups (id);

-- The event log, partitioned by the time in the UUIDv7, which is created_at. The key is the consumer's inbox too.
create table events (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id         uuid        not null,
    type       text        not null,
    object_id  text        not null,
    sample     boolean     not null default false, -- created by …/test: delivered, never listed
    body       bytea       not null,               -- the same bytes in each response and delivery
    updated_at timestamptz not null,               -- when it came in
    primary key (tenant_id, livemode, id)
) partition by range (id);
create index events_type on events (tenant_id, livemode, type, id);
create index events_object on events (tenant_id, livemode, object_id, id);
create index events_updated on events (tenant_id, livemode, updated_at, id);

-- The log of deliveries. "delivering" is no stored status: it is a pending delivery whose row in "queue" is claimed.
create table deliveries (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    endpoint_id     uuid        not null,
    id              uuid        not null,
    event_id        uuid        not null,
    event_type      text        not null,
    status          text        not null default 'pending',
    attempts        jsonb       not null default '[]',
    next_attempt_at timestamptz,
    updated_at      timestamptz not null,
    failure_reason  text,                           -- of a failed one: attempts_exhausted, expired, endpoint_disabled
    erased          boolean     not null default false, -- with the person of its event: receivers' responses are not kept
    primary key (tenant_id, livemode, endpoint_id, id)
) partition by range (id);
create index deliveries_status on deliveries (tenant_id, livemode, endpoint_id, status, id);
create index deliveries_type on deliveries (tenant_id, livemode, endpoint_id, event_type, id);
create index deliveries_updated on deliveries (tenant_id, livemode, endpoint_id, updated_at, id);
create index deliveries_event on deliveries (tenant_id, livemode, event_id);

-- Objects whose person was erased: a later event about one, such as from a dead-letter topic, is stored erased.
create table erasures (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    object_id  text        not null,
    expires_at timestamptz not null, -- the log takes in no older event then
    primary key (tenant_id, livemode, object_id)
);
create index erasures_expiry on erasures (expires_at);

-- The states of tenants, from identity's events. A tenant without a row is active.
create table tenant_states (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    status    text    not null,
    version   bigint  not null, -- of the tenant
    primary key (tenant_id, livemode)
);

select protect(t) from unnest(array['endpoints', 'endpoint_secrets', 'endpoint_queues', 'queue', 'wakeups', 'events', 'deliveries', 'erasures',
    'tenant_states']::regclass[]) t;
select open_to_worker('endpoints', 'select, update'), open_to_worker('endpoint_secrets', 'select, update, delete'),
       open_to_worker('endpoint_queues', 'select, update'), open_to_worker('queue', 'select, insert, update, delete'),
       open_to_worker('wakeups', 'select, insert, update, delete'), open_to_worker('events', 'select, insert, update'),
       open_to_worker('deliveries', 'select, insert, update'), open_to_worker('erasures', 'select, update, delete'),
       open_to_worker('tenant_states', 'select');
grant insert on outbox to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- uuid_floor is the least UUIDv7 of a millisecond.
create function uuid_floor(at timestamptz) returns uuid language sql immutable parallel safe
    as $$ select (lpad(to_hex(ceil(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

-- uuid_v7 is a new UUIDv7: 48 bits of milliseconds, the version, and a random rest.
create function uuid_v7(at timestamptz) returns uuid language sql volatile parallel safe
    as $$ select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid $$;

-- keep_partitions creates the partitions of the weeks between two times. Neither readers nor writers wait for it. The command
-- "webhooks partitions" drops old partitions as the owner, because a function cannot detach them concurrently.
-- +goose StatementBegin
create function keep_partitions(kept timestamptz, until timestamptz) returns void
language plpgsql volatile security definer set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
    parent text;
    week   timestamptz;
    child  text;
begin
    perform pg_advisory_xact_lock(hashtext('keep_partitions'));
    foreach parent in array array['events', 'deliveries'] loop
        week := date_trunc('week', kept);
        while week <= until loop
            child := format('%s_%s', parent, to_char(week, 'YYYYMMDD'));
            if to_regclass(child) is null then
                execute format('create table %I (like %I including defaults including constraints)', child, parent);
                execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                    parent, child, uuid_floor(week), uuid_floor(week + interval '7 days'));
            end if;
            week := week + interval '7 days';
        end loop;
    end loop;
end $$;
-- +goose StatementEnd
revoke execute on function keep_partitions from public;
-- +goose StatementBegin
do $$ begin
    execute format('grant execute on function keep_partitions to %I', worker_role());
    execute format('grant create on schema public to %I', current_user); -- the role that the function runs as
end $$;
-- +goose StatementEnd
select keep_partitions(now() - interval '30 days', now() + interval '14 days');

-- +goose ENVSUB ON
-- +goose Down
revoke insert on outbox from "${WORKER_ROLE}";
drop table tenant_states, erasures, deliveries, events, wakeups, queue, endpoint_queues, endpoint_secrets, endpoints;
drop function keep_partitions, uuid_v7, uuid_floor;
