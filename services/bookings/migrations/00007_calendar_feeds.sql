-- +goose ENVSUB ON
-- +goose Up
create table calendar_feeds (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    unit_id               uuid,
    include_details       boolean     not null,
    timezone              text        not null,       -- the operator's when the feed was created: its days are counted in it
    hash                  bytea       not null constraint calendar_feeds_hash_key unique, -- SHA-256; the token itself is nowhere
    version               bigint      not null default 1,
    created_at            timestamptz not null,
    updated_at            timestamptz not null,
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, unit_id) references units
);
create index calendar_feeds_created on calendar_feeds (tenant_id, livemode, created_at desc, id desc);
create index calendar_feeds_updated on calendar_feeds (tenant_id, livemode, updated_at, id);
select protect('calendar_feeds');

-- The door through row-level security: who reads a calendar has its token and nothing else. It runs as the owner, who
-- bypasses row-level security.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function calendar_feed_by_hash(wanted bytea)
returns table (tenant_id uuid, livemode boolean, id uuid, name text, unit_id uuid, include_details boolean, timezone text, clock timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select f.tenant_id, f.livemode, f.id, f.name, f.unit_id, f.include_details, f.timezone, c.frozen_at
    from calendar_feeds f left join test_clocks c on c.tenant_id = f.tenant_id and c.livemode = f.livemode
    where f.hash = wanted
$$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function calendar_feed_by_hash(bytea) from public;
grant execute on function calendar_feed_by_hash(bytea) to "${APP_ROLE}";

-- +goose Down
drop function calendar_feed_by_hash(bytea);
drop table calendar_feeds;
