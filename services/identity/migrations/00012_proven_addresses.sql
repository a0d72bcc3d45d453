-- +goose ENVSUB ON
-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- An address is proven by a link that was mailed to it or made by the command line. Until then its operator belongs to one tenant only.
alter table operators add column proven_at timestamptz; -- null: nobody has shown that the address is theirs
-- A link belongs to the tenant that made it; null for one that resets a password. "proves" says that using it proves the address.
alter table operator_links add column tenant_id uuid references tenants (tenant_id), add column proves boolean not null default false;
-- Equal to ended_at: an invitation that waits until the address is proven. The version before this one reads it as a membership that has ended.
alter table memberships add column invited_at timestamptz;

-- Of existing operators those are proven who chose their password by a link of the command line (a reset, or only invitations of the command
-- line), and those who belong to several tenants already, so that nobody loses access. Who handed over the other links is not known.
-- The ids in the audit log are base32 digits of 5 bits each, after two zero bits.
with named as (
    select o.id, 'op_' || (select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
            substring(B'00' || ('x' || replace(o.id::text, '-', ''))::bit(128) from i * 5 + 1 for 5)::bit(5)::integer + 1, 1), '' order by i)
        from generate_series(0, 25) i) as public_id
    from operators o where o.password_hash is not null
), known as (
    select n.id, count(distinct m.tenant_id) filter (where m.ended_at is null) as tenants,
        bool_or(l.action = 'operator.password') as reset,
        bool_or(l.action = 'operator.invite') and bool_and(l.source like 'cli:%') filter (where l.action = 'operator.invite') as by_command
    from named n join memberships m on m.operator_id = n.id
        left join audit_log l on l.tenant_id = m.tenant_id and l.object = n.public_id and l.action in ('operator.password', 'operator.invite')
    group by n.id
)
update operators o set proven_at = now() from known k where k.id = o.id and (k.tenants > 1 or k.reset or k.by_command);

-- Doors through row-level security, which run as the owner.
-- +goose ENVSUB OFF
-- Every tenant that an operator is, was or is invited to be a member of.
-- +goose StatementBegin
create function memberships_ever(wanted uuid) returns table (tenant_id uuid, ended_at timestamptz, invited_at timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select m.tenant_id, m.ended_at, m.invited_at from memberships m where m.operator_id = wanted
$$;
-- +goose StatementEnd

-- Begins the memberships that wait until the address of an operator is proven.
-- +goose StatementBegin
create function begin_memberships(wanted uuid) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
    update memberships set ended_at = null, invited_at = null, version = version + 1 where operator_id = wanted and ended_at = invited_at
$$;
-- +goose StatementEnd

-- Revokes the grants of an operator at the current tenant, in both modes, and returns their ids.
-- +goose StatementBegin
create function end_grants(member uuid, at timestamptz, why text) returns setof uuid
language sql volatile security definer set search_path = public, pg_temp as $$
    with ended as (
        update oauth_grants set revoked_at = at, revoked_reason = why, successor = null, version = version + 1
        where tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid and livemode in (true, false)
          and operator_id = member and revoked_at is null
        returning tenant_id, livemode, id), told as (
        insert into grant_signals (tenant_id, livemode, grant_id, value) select tenant_id, livemode, id, 'revoked' from ended
        on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value)
    select id from ended
$$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function memberships_ever(uuid), begin_memberships(uuid), end_grants(uuid, timestamptz, text) from public;
grant execute on function memberships_ever(uuid), begin_memberships(uuid), end_grants(uuid, timestamptz, text) to "${APP_ROLE}";

-- +goose Down
drop function end_grants(uuid, timestamptz, text), begin_memberships(uuid), memberships_ever(uuid);
alter table memberships drop column invited_at;
alter table operator_links drop column proves, drop column tenant_id;
alter table operators drop column proven_at;
