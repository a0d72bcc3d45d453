-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose ENVSUB ON
-- +goose Up
alter table oauth_apps
    add column verified_at        timestamptz, -- when the platform verified the app and its publisher; null: it is not verified
    add column verified_publisher text; -- name that the publisher had then; another name ends the verification
update oauth_apps a set verified_at = now(), verified_publisher = t.name
    from tenants t where t.tenant_id = a.tenant_id and a.id = '00000000-0000-0000-0000-000000003021'; -- the command line, which the platform registers itself
update oauth_apps set reuse_leeway_seconds = 10 where tenant_id is null; -- clients of assistants refresh from two windows

-- +goose ENVSUB OFF
-- What consent depends on besides the app itself. It is a function of its own, because the previous release calls app_by_client_id.
-- +goose StatementBegin
create function app_publisher(wanted uuid) returns table (verified_at timestamptz, publisher_status text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select case when a.verified_publisher = t.name then a.verified_at end, coalesce(t.status, '')
    from oauth_apps a left join tenants t on t.tenant_id = a.tenant_id where a.id = wanted;
end $$;
-- +goose StatementEnd

-- Whether the grants of an app at a tenant have ended with the app's publisher: another tenant that is not active. An app of the tenant
-- itself follows the state of the tenant, and an app that registered itself has no publisher.
-- +goose StatementBegin
create function publisher_ended(app uuid, tenant uuid) returns boolean
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return exists (select from oauth_apps a join tenants p on p.tenant_id = a.tenant_id
                   where a.id = app and a.tenant_id <> tenant and p.status <> 'active');
end $$;
-- +goose StatementEnd

-- Gives the published apps of the current tenant a new version, and signals the new versions of their grants at other tenants.
-- +goose StatementBegin
create function signal_published_apps() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps set version = version + 1
    where tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and published and deleted_at is null;
    insert into grant_signals (tenant_id, livemode, grant_id, value)
    select g.tenant_id, g.livemode, g.id, (g.version + a.version + coalesce(m.version, 0) + t.version)::text
    from oauth_apps a
    join oauth_grants g on g.app_id = a.id
    join tenants t on t.tenant_id = g.tenant_id
    left join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id
    where a.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and g.tenant_id <> a.tenant_id
      and g.revoked_at is null and g.exchanged_at is not null
    on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value
$$;
-- +goose StatementEnd

-- Adds an app that registers itself, and returns true. If its network has "per_network" unused ones, or there are "places" unused ones,
-- the oldest gives way, so that a flood shortens the time for a consent instead of preventing registrations.
-- +goose StatementBegin
create or replace function register_app(new_id uuid, new_name text, new_uris text[], new_scopes text[], from_network text, at timestamptz,
                                        per_network integer, places integer) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    perform pg_advisory_xact_lock(7591);
    delete from oauth_apps a where a.network is not null and a.id in (
            (select u.id from oauth_apps u where u.network = from_network order by u.created_at desc, u.id desc offset per_network - 1)
            union all
            (select u.id from oauth_apps u where u.tenant_id is null and u.network is not null order by u.created_at desc, u.id desc offset places - 1))
        and not exists (select from oauth_grants g where g.app_id = a.id);
    insert into oauth_apps (id, name, redirect_uris, scopes, published, reuse_leeway_seconds, network, created_at, updated_at)
    values (new_id, new_name, new_uris, new_scopes, true, 10, from_network, at, at);
    return true;
end $$;
-- +goose StatementEnd

-- The apps of an erased tenant that grants of other tenants refer to. The apps have ended, and the rows remain without the tenant and its
-- texts until the sweeper has deleted these grants.
-- +goose StatementBegin
create or replace function release_apps(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps a set tenant_id = null, name = '', redirect_uris = '{}', browser_origins = '{}', verified_publisher = null, deleted_at = coalesce(a.deleted_at, now())
    where a.tenant_id = wanted and exists (select from tenant_erasures e where e.tenant_id = wanted)
      and exists (select from oauth_grants g where g.app_id = a.id and g.tenant_id <> wanted)
$$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function app_publisher(uuid), publisher_ended(uuid, uuid), signal_published_apps() from public;
grant execute on function app_publisher(uuid), publisher_ended(uuid, uuid), signal_published_apps() to "${APP_ROLE}";

-- +goose Down
-- +goose ENVSUB OFF
-- +goose StatementBegin
create or replace function register_app(new_id uuid, new_name text, new_uris text[], new_scopes text[], from_network text, at timestamptz,
                                        per_network integer, places integer) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    perform pg_advisory_xact_lock(7591);
    if (select count(*) from oauth_apps where network = from_network) >= per_network then
        return false;
    end if;
    delete from oauth_apps a where a.network is not null and a.id in (
            select u.id from oauth_apps u where u.tenant_id is null and u.network is not null order by u.created_at desc, u.id desc offset places - 1)
        and not exists (select from oauth_grants g where g.app_id = a.id);
    insert into oauth_apps (id, name, redirect_uris, scopes, published, reuse_leeway_seconds, network, created_at, updated_at)
    values (new_id, new_name, new_uris, new_scopes, true, 0, from_network, at, at);
    return true;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function release_apps(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps a set tenant_id = null, name = '', redirect_uris = '{}', browser_origins = '{}', deleted_at = coalesce(a.deleted_at, now())
    where a.tenant_id = wanted and exists (select from tenant_erasures e where e.tenant_id = wanted)
      and exists (select from oauth_grants g where g.app_id = a.id and g.tenant_id <> wanted)
$$;
-- +goose StatementEnd
drop function signal_published_apps(), publisher_ended(uuid, uuid), app_publisher(uuid);
alter table oauth_apps drop column verified_publisher, drop column verified_at;
