-- +goose ENVSUB ON
-- +goose Up
-- The limits that the platform has set for a tenant. A limit that is null, or not in caps, has its default.
alter table tenants
    add column requests_per_minute            integer, -- of all credentials of a mode
    add column credential_requests_per_minute integer, -- of each credential
    add column caps                           jsonb not null default '{}'; -- maximum by name in proto.Caps

-- +goose ENVSUB OFF
-- The limits of one tenant, for the look-ups of credentials and sessions, which do not know the tenant before.
-- +goose StatementBegin
create function tenant_limits(wanted uuid)
returns table (requests_per_minute integer, credential_requests_per_minute integer, caps jsonb)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select t.requests_per_minute, t.credential_requests_per_minute, t.caps from tenants t where t.tenant_id = wanted;
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function tenant_limits(uuid) from public;
grant execute on function tenant_limits(uuid) to "${APP_ROLE}";

-- +goose Down
drop function tenant_limits(uuid);
alter table tenants drop column caps, drop column credential_requests_per_minute, drop column requests_per_minute;
