-- +goose ENVSUB ON
-- +goose Up
-- Exempt from (tenant_id, livemode): a tenant spans both modes. tenant_id is its own id.
create table tenants (
    tenant_id          uuid        primary key,
    slug               text        not null constraint tenants_slug_key unique,
    name               text        not null,
    timezone           text        not null,
    currency           char(3)     not null,
    country            char(2),
    auto_confirm       boolean     not null default false,
    hold_ttl_minutes   integer,
    min_notice_minutes integer,
    max_advance_days   integer,
    confirm_on_deposit boolean     not null default true,
    version            bigint      not null default 1,
    created_at         timestamptz not null,
    updated_at         timestamptz not null
);
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
create policy worker on tenants for select to "${WORKER_ROLE}" using (true); -- the command line lists and finds them
grant select, insert, update on tenants to "${APP_ROLE}";
grant select on tenants to "${WORKER_ROLE}";

create table api_keys (
    tenant_id    uuid        not null references tenants (tenant_id),
    livemode     boolean     not null,
    id           uuid        not null constraint api_keys_id_key unique,
    name         text        not null,
    hash         bytea       not null constraint api_keys_hash_key unique, -- SHA-256; the key itself is nowhere
    scopes       text[]      not null,
    version      bigint      not null default 1,
    created_at   timestamptz not null,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    primary key (tenant_id, livemode, id)
);
select protect('api_keys');
revoke delete on api_keys from "${APP_ROLE}";
create policy worker on api_keys to "${WORKER_ROLE}" using (true);
grant select (id, last_used_at), update (last_used_at) on api_keys to "${WORKER_ROLE}";

-- What Redis has still to be told: rows leave this table once it was.
create table key_signals (
    tenant_id uuid    not null references tenants (tenant_id),
    livemode  boolean not null,
    key_id    uuid    not null,
    value     text    not null, -- 'revoked', or the newest version of the principal
    primary key (tenant_id, livemode, key_id)
);
select protect('key_signals');
revoke delete on key_signals from "${APP_ROLE}";
select open_to_worker('key_signals', 'select, delete');

create table audit_log (
    tenant_id uuid        not null references tenants (tenant_id),
    livemode  boolean     not null,
    seq       bigint      not null,
    at        timestamptz not null,
    actor     text        not null,
    action    text        not null,
    object    text        not null,
    before    jsonb,
    after     jsonb,
    source    text        not null,
    prev_hash bytea       not null,
    hash      bytea       not null,
    primary key (tenant_id, livemode, seq),
    constraint audit_log_seq_key unique (tenant_id, seq)
);
select protect('audit_log');
revoke update, delete on audit_log from "${APP_ROLE}";
select open_to_worker('audit_log', 'select');

-- +goose ENVSUB OFF
-- +goose StatementBegin
create function audit_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger append_only before update or delete or truncate on audit_log
    for each statement execute function audit_is_append_only();
-- +goose ENVSUB ON

-- Exempt from livemode: one chain per tenant, over both modes.
create table audit_heads (
    tenant_id uuid   primary key references tenants (tenant_id),
    seq       bigint not null,
    hash      bytea  not null
);
alter table audit_heads enable row level security;
alter table audit_heads force row level security;
create policy tenant on audit_heads to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
create policy worker on audit_heads for select to "${WORKER_ROLE}" using (true);
grant select, insert, update on audit_heads to "${APP_ROLE}";
grant select on audit_heads to "${WORKER_ROLE}";

-- The three doors through row-level security. Each runs as the owner, who bypasses it.
-- +goose ENVSUB OFF

-- +goose StatementBegin
create function credential_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, revoked boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function key_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.tenant_id, k.livemode from api_keys k where k.id = wanted
$$;
-- +goose StatementEnd

-- Signals the new version of every active key of the current tenant, in both modes.
-- +goose StatementBegin
create function signal_tenant_keys() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    insert into key_signals (tenant_id, livemode, key_id, value)
    select k.tenant_id, k.livemode, k.id, (k.version + t.version)::text
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and k.revoked_at is null
    on conflict (tenant_id, livemode, key_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function credential_by_hash(bytea), key_home(uuid), signal_tenant_keys() from public;
grant execute on function credential_by_hash(bytea), key_home(uuid), signal_tenant_keys() to "${APP_ROLE}";

-- +goose Down
drop function signal_tenant_keys(), key_home(uuid), credential_by_hash(bytea);
drop table audit_heads, audit_log, key_signals, api_keys, tenants;
drop function audit_is_append_only();
