-- migrationlint:allow column-check: there is one row for each tenant, so the scan takes milliseconds
-- +goose ENVSUB ON
-- +goose Up
alter table tenants
    add column status            text not null default 'active' check (status in ('active', 'suspended')),
    add column status_reason     text not null default '', -- of the last change
    add column status_changed_at timestamptz; -- null: the tenant was never suspended

-- The state of any tenant, for lookups of credentials and sessions, which do not know the tenant before. It is a function of its own, so
-- that those lookups keep the functions that the previous release calls.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function tenant_state(wanted uuid) returns table (status text, reason text)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select t.status, t.status_reason from tenants t where t.tenant_id = wanted;
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function tenant_state(uuid) from public;
grant execute on function tenant_state(uuid) to "${APP_ROLE}";

-- +goose Down
drop function tenant_state(uuid);
alter table tenants drop column status_changed_at, drop column status_reason, drop column status;
