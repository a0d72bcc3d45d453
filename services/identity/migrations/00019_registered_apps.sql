-- +goose NO TRANSACTION
-- +goose ENVSUB ON
-- migrationlint:allow drop-unique: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Apps that have registered themselves (RFC 7591) belong to no tenant: their tenant_id is null. Each statement can run again.
drop index concurrently if exists oauth_grants_of_app;
create index concurrently oauth_grants_of_app on oauth_grants (app_id); -- for the deletion of apps; oauth_grants_app has no revoked ones
alter table oauth_apps drop constraint if exists oauth_apps_pkey; -- id is unique and not null
alter table oauth_apps alter column tenant_id drop not null;
alter table oauth_apps
    add column if not exists used_at timestamptz, -- the last consent, of an app that registered itself
    add column if not exists network text; -- from which it registered; null from its first consent on
create index if not exists oauth_apps_tenant on oauth_apps (tenant_id, id);
create index if not exists oauth_apps_registered on oauth_apps (created_at, id) where tenant_id is null;
create index if not exists oauth_apps_network on oauth_apps (network) where network is not null;

-- They are no tenant's data: each tenant may read them. Only the functions below write them.
drop policy if exists registered on oauth_apps;
create policy registered on oauth_apps for select to "${APP_ROLE}" using (tenant_id is null);
drop policy if exists worker on oauth_apps;
create policy worker on oauth_apps to "${WORKER_ROLE}" using (tenant_id is null);
grant select, delete on oauth_apps to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- An app by its client_id, also one that registered itself, which has no publisher. The version before this one calls app_by_id, which
-- does not know such apps, so it never shows one without the warning.
-- +goose StatementBegin
create or replace function app_by_client_id(wanted uuid)
returns table (tenant_id uuid, id uuid, name text, redirect_uris text[], scopes text[], published boolean, reuse_leeway_seconds integer,
               browser_origins text[], version bigint, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, publisher text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select coalesce(a.tenant_id, '00000000-0000-0000-0000-000000000000'), a.id, a.name, a.redirect_uris, a.scopes, a.published,
           a.reuse_leeway_seconds, a.browser_origins, a.version, a.created_at, a.updated_at, a.deleted_at, coalesce(t.name, '')
    from oauth_apps a left join tenants t on t.tenant_id = a.tenant_id where a.id = wanted;
end $$;
-- +goose StatementEnd

-- Adds an app that registers itself. It returns false if its network has "per_network" unused ones. If there are "places" unused ones, the
-- oldest gives way, so that a flood from many networks shortens the time for a consent instead of preventing registrations.
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

-- Records a consent for an app that registered itself. It returns false if there is no such app any more.
-- +goose StatementBegin
create or replace function use_registered_app(wanted uuid, at timestamptz) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set used_at = at, network = null where id = wanted and tenant_id is null and deleted_at is null;
    return found;
end $$;
-- +goose StatementEnd

-- Marks an app that registered itself as deleted. It returns false if there is no such app.
-- +goose StatementBegin
create or replace function delete_registered_app(wanted uuid, at timestamptz) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set deleted_at = at, network = null, version = version + 1 where id = wanted and tenant_id is null and deleted_at is null;
    return found;
end $$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function app_by_client_id(uuid), register_app(uuid, text, text[], text[], text, timestamptz, integer, integer),
    use_registered_app(uuid, timestamptz), delete_registered_app(uuid, timestamptz) from public;
grant execute on function app_by_client_id(uuid), register_app(uuid, text, text[], text[], text, timestamptz, integer, integer),
    use_registered_app(uuid, timestamptz), delete_registered_app(uuid, timestamptz) to "${APP_ROLE}";

-- +goose Down
drop function app_by_client_id(uuid), register_app(uuid, text, text[], text[], text, timestamptz, integer, integer),
    use_registered_app(uuid, timestamptz), delete_registered_app(uuid, timestamptz);
drop policy registered on oauth_apps;
drop policy worker on oauth_apps;
revoke select, delete on oauth_apps from "${WORKER_ROLE}";
delete from oauth_access_tokens k using oauth_grants g, oauth_apps a
    where (k.tenant_id, k.livemode, k.grant_id) = (g.tenant_id, g.livemode, g.id) and a.id = g.app_id and a.tenant_id is null;
delete from oauth_grants g using oauth_apps a where a.id = g.app_id and a.tenant_id is null;
delete from oauth_apps where tenant_id is null;
alter table oauth_apps drop column used_at, drop column network, alter column tenant_id set not null, add primary key (tenant_id, id);
drop index if exists oauth_apps_tenant, oauth_grants_of_app;
