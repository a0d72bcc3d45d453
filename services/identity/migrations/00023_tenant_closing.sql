-- migrationlint:allow constraint-scan: there is one row for each tenant, so the scan takes milliseconds
-- migrationlint:allow index-lock: there is one row for each tenant, so the scan takes milliseconds
-- +goose ENVSUB ON
-- +goose Up
alter table tenants
    drop constraint tenants_status_check,
    add constraint tenants_status_check check (status in ('active', 'suspended', 'closing', 'erasing')),
    add column erase_at          timestamptz, -- when the data of a closing tenant is to be erased
    add column erasure_waits_for text not null default '', -- what a service has to complete before
    add column status_changed_by text not null default ''; -- who made the last change, and from where
create index tenants_erase_at on tenants (erase_at) where erase_at is not null;

-- What remains of an erased tenant: who closed it, and which services have confirmed its erasure.
alter table tenant_erasures
    add column closed_by    text        not null default '',
    add column services     jsonb       not null default '{}', -- number of deleted rows, by the name of a service that has finished
    add column leased_until timestamptz not null default '-infinity'; -- until then, a process continues the erasure
create index tenant_erasures_unfinished on tenant_erasures (leased_until) where erased_at is null;
grant insert on tenant_erasures to "${APP_ROLE}"; -- in the transaction that makes the erasure irrevocable

-- Like tenant_state, which the previous release calls, with the end of a closure.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function tenant_status(wanted uuid) returns table (status text, reason text, erase_at timestamptz)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select t.status, t.status_reason, t.erase_at from tenants t where t.tenant_id = wanted;
end $$;
-- +goose StatementEnd

-- The operators whose data nothing needs after the erasure of a tenant: those who are or were members of it, and of no other one.
-- +goose StatementBegin
create function members_of_only(wanted uuid) returns table (id uuid)
language sql stable security definer set search_path = public, pg_temp as $$
    select o.id from memberships m join operators o on o.id = m.operator_id
    where m.tenant_id = wanted and o.name <> '' -- not erased yet
      and not exists (select from memberships n where n.operator_id = m.operator_id and n.tenant_id <> wanted
          and (n.ended_at is null or n.ended_at = n.invited_at))
    order by o.id limit 1000
$$;
-- +goose StatementEnd

-- The apps of an erased tenant that grants of other tenants refer to. The apps have ended, and the rows remain without the tenant and its
-- texts until the sweeper has deleted these grants.
-- +goose StatementBegin
create function release_apps(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update oauth_apps a set tenant_id = null, name = '', redirect_uris = '{}', browser_origins = '{}', deleted_at = coalesce(a.deleted_at, now())
    where a.tenant_id = wanted and exists (select from tenant_erasures e where e.tenant_id = wanted)
      and exists (select from oauth_grants g where g.app_id = a.id and g.tenant_id <> wanted)
$$;
-- +goose StatementEnd

-- The audit log is append only, except for the erasure of the tenant.
-- +goose StatementBegin
create or replace function audit_is_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and is_erasing(tg_relid) then
        return null;
    end if;
    raise exception 'the audit log is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function tenant_status(uuid), members_of_only(uuid), release_apps(uuid) from public;
grant execute on function tenant_status(uuid), members_of_only(uuid), release_apps(uuid) to "${APP_ROLE}";

-- +goose Down
drop function release_apps(uuid), members_of_only(uuid), tenant_status(uuid);
-- +goose ENVSUB OFF
-- +goose StatementBegin
create or replace function audit_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
alter table tenant_erasures drop column leased_until, drop column services, drop column closed_by;
alter table tenants
    drop column status_changed_by, drop column erasure_waits_for, drop column erase_at,
    drop constraint tenants_status_check, add constraint tenants_status_check check (status in ('active', 'suspended'));
