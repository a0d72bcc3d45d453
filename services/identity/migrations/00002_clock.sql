-- migrationlint:allow drop-object: it precedes 1.0.0, so no released version runs during it
-- +goose Up
alter table tenants add column clock timestamptz; -- the frozen time of test mode; null: real time holds

drop function credential_by_hash(bytea);
-- +goose StatementBegin
create function credential_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, clock timestamptz, revoked boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, case when not k.livemode then t.clock end, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted
$$;
-- +goose StatementEnd
revoke all on function credential_by_hash(bytea) from public;
-- +goose ENVSUB ON
grant execute on function credential_by_hash(bytea) to "${APP_ROLE}";

-- +goose Down
drop function credential_by_hash(bytea);
-- +goose StatementBegin
create function credential_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, revoked boolean)
language sql stable security definer set search_path = public, pg_temp as '
    select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted
';
-- +goose StatementEnd
revoke all on function credential_by_hash(bytea) from public;
grant execute on function credential_by_hash(bytea) to "${APP_ROLE}";
alter table tenants drop column clock;
