-- +goose ENVSUB OFF
-- +goose Up
-- The same function in plpgsql, which keeps its plan. A function in SQL is planned on each call.
-- +goose StatementBegin
create or replace function key_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, clock timestamptz, expires_at timestamptz, revoked boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, case when not k.livemode then t.clock end, k.expires_at, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function key_by_hash(wanted bytea)
returns table (key_id uuid, tenant_id uuid, livemode boolean, name text, scopes text[], version bigint,
               timezone text, currency text, policy_version bigint, clock timestamptz, expires_at timestamptz, revoked boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select k.id, k.tenant_id, k.livemode, k.name, k.scopes, k.version + t.version,
           t.timezone, t.currency::text, t.version, case when not k.livemode then t.clock end, k.expires_at, k.revoked_at is not null
    from api_keys k join tenants t on t.tenant_id = k.tenant_id
    where k.hash = wanted
$$;
-- +goose StatementEnd
