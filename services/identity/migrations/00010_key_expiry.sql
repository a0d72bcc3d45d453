-- +goose ENVSUB ON
-- +goose Up
alter table api_keys add column expires_at timestamptz; -- when a rotated key ends; null: it does not end by itself

-- As credential_by_hash, which the version before calls and a later version drops.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function key_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, clock timestamptz, expires_at timestamptz, revoked boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, case when not k.livemode then t.clock end, k.expires_at, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted
$$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function key_by_hash(bytea) from public;
grant execute on function key_by_hash(bytea) to "${APP_ROLE}";

-- +goose Down
drop function key_by_hash(bytea);
alter table api_keys drop column expires_at;
