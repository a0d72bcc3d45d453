-- +goose ENVSUB ON
-- +goose Up
-- Exempt from tenant and mode: an operator is a person, who may be a member of several tenants.
create table operators (
    id            uuid        primary key,
    email         text        not null,
    email_lower   text        collate "C" not null constraint operators_email_key unique,
    name          text        not null,
    password_hash text, -- argon2id; null until the link of the invitation was used
    totp_secret   bytea, -- sealed; null without a second factor
    totp_step     bigint not null default 0, -- the last time step whose code was used
    version       bigint      not null default 1,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    disabled_at   timestamptz
);
grant select, insert, update on operators to "${APP_ROLE}";
grant select (id, totp_secret), update (totp_secret) on operators to "${WORKER_ROLE}"; -- for reseal

-- Exempt from livemode: a membership holds for both modes. It stays when it has ended, because its version only rises.
create table memberships (
    tenant_id   uuid        not null references tenants (tenant_id),
    operator_id uuid        not null references operators (id),
    role        text        not null,
    version     bigint      not null default 1,
    created_at  timestamptz not null,
    ended_at    timestamptz,
    primary key (tenant_id, operator_id)
);
create index memberships_operator on memberships (operator_id);
alter table memberships enable row level security;
alter table memberships force row level security;
create policy tenant on memberships to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
grant select, insert, update on memberships to "${APP_ROLE}";

-- Exempt from tenant and mode, like the tables of operators that follow.
create table operator_links (
    hash        bytea       primary key, -- SHA-256 of the token in the link
    operator_id uuid        not null references operators (id),
    purpose     text        not null, -- invite or reset
    expires_at  timestamptz not null
);
create index operator_links_operator on operator_links (operator_id);
grant select, insert, delete on operator_links to "${APP_ROLE}";

create table recovery_codes (
    operator_id uuid  not null references operators (id),
    hash        bytea not null,
    primary key (operator_id, hash)
);
grant select, insert, delete on recovery_codes to "${APP_ROLE}";

create table operator_sessions (
    hash        bytea       primary key, -- SHA-256 of the cookie's token
    id          uuid        not null constraint operator_sessions_id_key unique,
    operator_id uuid        references operators (id), -- null before the second factor
    data        bytea       not null,
    address     text        not null default '',
    agent       text        not null default '',
    created_at  timestamptz not null,
    seen_at     timestamptz not null,
    expires_at  timestamptz not null
);
create index operator_sessions_operator on operator_sessions (operator_id);
create index operator_sessions_expires on operator_sessions (expires_at);
grant select, insert, update, delete on operator_sessions to "${APP_ROLE}", "${WORKER_ROLE}";

-- The browsers that an operator has signed in with: failures elsewhere do not delay them.
create table known_browsers (
    operator_id uuid        not null references operators (id),
    hash        bytea       not null, -- SHA-256 of the browser's cookie
    used_at     timestamptz not null,
    primary key (operator_id, hash)
);
grant select, insert, update, delete on known_browsers to "${APP_ROLE}";

create table sign_in_attempts (
    kind      text        not null, -- account, address or browser
    hash      bytea       not null,
    failures  integer     not null,
    last_at   timestamptz not null,
    allowed_at timestamptz not null, -- when the next attempt may come
    primary key (kind, hash)
);
create index sign_in_attempts_last on sign_in_attempts (last_at);
grant select, insert, update, delete on sign_in_attempts to "${APP_ROLE}", "${WORKER_ROLE}";

-- Exempt from livemode: an app works in both modes.
create table oauth_apps (
    tenant_id     uuid        not null references tenants (tenant_id), -- whose operators made it
    id            uuid        not null constraint oauth_apps_id_key unique,
    name          text        not null,
    redirect_uris text[]      not null,
    scopes        text[]      not null,
    published     boolean     not null,
    reuse_leeway_seconds integer not null,
    browser_origins text[]    not null default '{}', -- of pages whose scripts may use its tokens
    version       bigint      not null default 1,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    deleted_at    timestamptz,
    primary key (tenant_id, id)
);
create index oauth_apps_origins on oauth_apps using gin (browser_origins) where deleted_at is null and browser_origins <> '{}';
alter table oauth_apps enable row level security;
alter table oauth_apps force row level security;
create policy tenant on oauth_apps to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
grant select, insert, update on oauth_apps to "${APP_ROLE}";

-- One row for each consent. All tokens that come of it are its family. No history of refresh tokens is kept: a token names its family,
-- and one of a known family that is not the present one was used before.
create table oauth_grants (
    tenant_id          uuid        not null,
    livemode           boolean     not null,
    id                 uuid        not null constraint oauth_grants_id_key unique,
    app_id             uuid        not null references oauth_apps (id),
    operator_id        uuid        not null references operators (id),
    scopes             text[]      not null,
    redirect_uri       text        not null,
    code_hash          bytea       not null constraint oauth_grants_code_key unique,
    code_challenge     text        not null,
    code_expires_at    timestamptz not null,
    exchanged_at       timestamptz, -- null until the code was exchanged
    family_hash        bytea       constraint oauth_grants_family_key unique, -- of the part that all refresh tokens of the family share
    refresh_hash       bytea, -- of the present refresh token
    previous_hash      bytea, -- of the one before it
    successor          bytea, -- sealed: what the previous one was exchanged for, for the leeway only
    rotated_at         timestamptz,
    rotations          bigint      not null default 0,
    refresh_expires_at timestamptz,
    ends_at            timestamptz not null,
    version            bigint      not null default 1,
    created_at         timestamptz not null,
    revoked_at         timestamptz,
    revoked_reason     text,
    primary key (tenant_id, livemode, id)
) with (fillfactor = 80);
select protect('oauth_grants');
create index oauth_grants_operator on oauth_grants (tenant_id, livemode, operator_id, app_id, id) where revoked_at is null;
create index oauth_grants_app on oauth_grants (app_id) where revoked_at is null;
-- For the sweeper. None of them holds a column that a refresh changes: it stays one write to the heap.
create index oauth_grants_unused on oauth_grants (code_expires_at) where exchanged_at is null;
create index oauth_grants_revoked on oauth_grants (revoked_at) where revoked_at is not null;
create index oauth_grants_ends on oauth_grants (ends_at);
create index oauth_grants_successor on oauth_grants (rotated_at) where successor is not null;
revoke delete on oauth_grants from "${APP_ROLE}";
create policy worker on oauth_grants to "${WORKER_ROLE}" using (true);
grant select, delete, update (successor) on oauth_grants to "${WORKER_ROLE}";

-- The access tokens of a grant, in a ring: the ninth takes the place of the first.
create table oauth_access_tokens (
    tenant_id  uuid        not null,
    livemode   boolean     not null,
    grant_id   uuid        not null,
    slot       smallint    not null,
    hash       bytea       not null constraint oauth_access_tokens_hash_key unique, -- SHA-256; the token itself is nowhere
    scopes     text[], -- null: those of the grant
    expires_at timestamptz not null,
    primary key (tenant_id, livemode, grant_id, slot)
) with (fillfactor = 80);
select protect('oauth_access_tokens');
revoke delete on oauth_access_tokens from "${APP_ROLE}";
select open_to_worker('oauth_access_tokens', 'select, delete');

-- What Redis has still to be told of grants, as key_signals has it of keys.
create table grant_signals (
    tenant_id uuid    not null references tenants (tenant_id),
    livemode  boolean not null,
    grant_id  uuid    not null,
    value     text    not null, -- 'revoked', or the newest version of the principal
    primary key (tenant_id, livemode, grant_id)
);
select protect('grant_signals');
revoke delete on grant_signals from "${APP_ROLE}";
select open_to_worker('grant_signals', 'select, delete');
create index grant_signals_grant on grant_signals (grant_id); -- an app's grants may be many

-- Doors through row-level security, each for one question. They run as the owner, who bypasses it. Those that requests wait for are
-- plpgsql, which keeps their plans.
-- +goose ENVSUB OFF

-- What an access token stands for. Its scopes are those that the grant, the app and the token have; the role is the caller's to apply.
-- +goose StatementBegin
create function access_token_by_hash(wanted bytea)
returns table (grant_id uuid, tenant_id uuid, livemode boolean, app_id uuid, operator_id uuid, name text, origins text[], scopes text[], role text,
               version bigint, expires_at timestamptz,
               timezone text, currency text, policy_version bigint, clock timestamptz, revoked boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select g.id, g.tenant_id, g.livemode, g.app_id, g.operator_id, a.name, a.browser_origins,
           array(select s from unnest(g.scopes) with ordinality u(s, n)
                 where s = any (a.scopes) and (k.scopes is null or s = any (k.scopes)) order by n),
           coalesce(m.role, ''), g.version + a.version + coalesce(m.version, 0) + t.version, k.expires_at,
           t.timezone, t.currency::text, t.version, case when not g.livemode then t.clock end,
           g.revoked_at is not null or a.deleted_at is not null or o.disabled_at is not null or m.operator_id is null or m.ended_at is not null
           or not (a.published or a.tenant_id = g.tenant_id)
    from oauth_access_tokens k
    join oauth_grants g on g.tenant_id = k.tenant_id and g.livemode = k.livemode and g.id = k.grant_id
    join oauth_apps a on a.id = g.app_id
    join operators o on o.id = g.operator_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where k.hash = wanted;
end $$;
-- +goose StatementEnd

-- A grant by the hash of its code, or of what its refresh tokens share, with what bounds its scopes now.
-- +goose StatementBegin
create function grant_by_hash(code bytea, family bytea)
returns table (tenant_id uuid, livemode boolean, id uuid, app_id uuid, operator_id uuid, scopes text[], redirect_uri text, code_challenge text,
               code_expires_at timestamptz, exchanged_at timestamptz, refresh_hash bytea, previous_hash bytea, successor bytea,
               rotated_at timestamptz, refresh_expires_at timestamptz, ends_at timestamptz, version bigint, created_at timestamptz,
               revoked_at timestamptz, role text, ended boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select g.tenant_id, g.livemode, g.id, g.app_id, g.operator_id,
           array(select s from unnest(g.scopes) with ordinality u(s, n) where s = any (a.scopes) order by n), g.redirect_uri, g.code_challenge,
           g.code_expires_at, g.exchanged_at, g.refresh_hash, g.previous_hash, g.successor,
           g.rotated_at, g.refresh_expires_at, g.ends_at, g.version, g.created_at, g.revoked_at, coalesce(m.role, ''),
           g.revoked_at is not null or a.deleted_at is not null or o.disabled_at is not null or m.operator_id is null or m.ended_at is not null
           or not (a.published or a.tenant_id = g.tenant_id)
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join operators o on o.id = g.operator_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.code_hash = code or g.family_hash = family;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function app_by_id(wanted uuid)
returns table (tenant_id uuid, id uuid, name text, redirect_uris text[], scopes text[], published boolean, reuse_leeway_seconds integer,
               browser_origins text[], version bigint, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, publisher text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select a.tenant_id, a.id, a.name, a.redirect_uris, a.scopes, a.published, a.reuse_leeway_seconds, a.browser_origins,
           a.version, a.created_at, a.updated_at, a.deleted_at, t.name
    from oauth_apps a join tenants t on t.tenant_id = a.tenant_id where a.id = wanted;
end $$;
-- +goose StatementEnd

-- Whether an app has registered an origin.
-- +goose StatementBegin
create function origin_is_registered(wanted text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
    select exists (select from oauth_apps where browser_origins @> array[wanted] and browser_origins <> '{}' and deleted_at is null)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function memberships_of(wanted uuid)
returns table (tenant_id uuid, operator_id uuid, role text, version bigint, created_at timestamptz, ended_at timestamptz, slug text, tenant_name text)
language sql stable security definer set search_path = public, pg_temp as $$
    select m.tenant_id, m.operator_id, m.role, m.version, m.created_at, m.ended_at, t.slug, t.name
    from memberships m join tenants t on t.tenant_id = m.tenant_id
    where m.operator_id = wanted and m.ended_at is null order by t.name, t.slug
$$;
-- +goose StatementEnd

-- The grants of an operator that are not revoked, over all tenants, newest first.
-- +goose StatementBegin
create function grants_of(wanted uuid)
returns table (tenant_id uuid, livemode boolean, id uuid, tenant text, app text, scopes text[], created_at timestamptz, exchanged boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select g.tenant_id, g.livemode, g.id, t.name, a.name, g.scopes, g.created_at, g.exchanged_at is not null
    from memberships m join oauth_grants g on g.tenant_id = m.tenant_id and g.livemode in (true, false) and g.operator_id = m.operator_id
        join tenants t on t.tenant_id = g.tenant_id join oauth_apps a on a.id = g.app_id
    where m.operator_id = wanted and g.revoked_at is null order by g.id desc
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function grant_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select g.tenant_id, g.livemode from oauth_grants g where g.id = wanted
$$;
-- +goose StatementEnd

-- Signals the new versions of the grants that are not revoked: of one app, wherever they are, or of one member of the current tenant.
-- +goose StatementBegin
create function signal_grants(app uuid, member uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.revoked_at is null and g.exchanged_at is not null
      and (g.app_id = app or g.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.operator_id = member)
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- Signals the new version of every active key and grant of the current tenant, in both modes.
-- +goose StatementBegin
create or replace function signal_tenant_keys() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    insert into key_signals (tenant_id, livemode, key_id, value)
    select k.tenant_id, k.livemode, k.id, (k.version + t.version)::text
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and k.revoked_at is null
    on conflict (tenant_id, livemode, key_id) do update set value = excluded.value;
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_grants g
    join oauth_apps a on a.id = g.app_id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where g.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.livemode in (true, false)
      and g.revoked_at is null and g.exchanged_at is not null
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function access_token_by_hash(bytea), grant_by_hash(bytea, bytea), app_by_id(uuid), memberships_of(uuid), grants_of(uuid),
    grant_home(uuid), signal_grants(uuid, uuid), origin_is_registered(text) from public;
grant execute on function access_token_by_hash(bytea), grant_by_hash(bytea, bytea), app_by_id(uuid), memberships_of(uuid), grants_of(uuid),
    grant_home(uuid), signal_grants(uuid, uuid), origin_is_registered(text) to "${APP_ROLE}";

-- +goose Down
-- +goose ENVSUB OFF
drop function origin_is_registered(text), signal_grants(uuid, uuid), grant_home(uuid), grants_of(uuid), memberships_of(uuid), app_by_id(uuid), grant_by_hash(bytea, bytea),
    access_token_by_hash(bytea);
-- +goose StatementBegin
create or replace function signal_tenant_keys() returns void
language sql volatile security definer set search_path = public, pg_temp as '
    insert into key_signals (tenant_id, livemode, key_id, value)
    select k.tenant_id, k.livemode, k.id, (k.version + t.version)::text
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid and k.revoked_at is null
    on conflict (tenant_id, livemode, key_id) do update set value = excluded.value
';
-- +goose StatementEnd
drop table grant_signals, oauth_access_tokens, oauth_grants, oauth_apps, sign_in_attempts, known_browsers, operator_sessions, recovery_codes,
    operator_links, memberships, operators;
