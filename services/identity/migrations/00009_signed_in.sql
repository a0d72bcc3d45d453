-- +goose ENVSUB OFF
-- +goose Up
-- Who has signed in by a session, with a row for each tenant that it is a member of: operators see all of their tenants at once.
-- +goose StatementBegin
create function signed_in_by(wanted bytea, at timestamptz)
returns table (seen_at timestamptz, created_at timestamptz, id uuid, operator uuid, email text, name text, factor boolean,
               tenant uuid, slug text, tenant_name text, role text, timezone text, currency text, country text, version bigint, clock timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select s.seen_at, s.created_at, s.id, o.id, o.email, o.name, o.totp_secret is not null,
           t.tenant_id, t.slug, t.name, m.role, t.timezone, t.currency::text, t.country::text, t.version, t.clock
    from operator_sessions s
    join operators o on o.id = s.operator_id and o.disabled_at is null
    left join memberships m on m.operator_id = o.id and m.ended_at is null
    left join tenants t on t.tenant_id = m.tenant_id
    where s.hash = wanted and s.expires_at > at
    order by m.created_at, t.slug
$$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function signed_in_by(bytea, timestamptz) from public;
grant execute on function signed_in_by(bytea, timestamptz) to "${APP_ROLE}";

-- +goose Down
drop function signed_in_by(bytea, timestamptz);
