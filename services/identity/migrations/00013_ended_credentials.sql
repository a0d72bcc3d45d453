-- +goose ENVSUB ON
-- +goose Up
alter table api_keys add column successor uuid; -- the key that a rotation made in its place; null for one that was not rotated

-- Which of these credentials have ended, and which key has taken the place of one: the n-th of the lists is the n-th that is asked for.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function ended_credentials(tenants uuid[], kinds text[], wanted uuid[], at timestamptz)
returns table (n bigint, ended boolean, successor uuid)
language plpgsql stable security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select a.n, case a.kind
        when 'key' then not exists (select from api_keys k where k.id = a.id and k.tenant_id = a.tenant_id and k.revoked_at is null
            and (k.expires_at is null or k.expires_at > at))
        when 'gr' then not exists (select from oauth_grants g
            join oauth_apps p on p.id = g.app_id and p.deleted_at is null and (p.published or p.tenant_id = g.tenant_id)
            join operators o on o.id = g.operator_id and o.disabled_at is null
            join memberships m on m.tenant_id = g.tenant_id and m.operator_id = g.operator_id and m.ended_at is null
            where g.id = a.id and g.tenant_id = a.tenant_id and g.livemode in (true, false) and g.revoked_at is null and g.ends_at > at
                and (g.refresh_expires_at is null or g.refresh_expires_at > at))
        when 'op' then not exists (select from memberships m join operators o on o.id = m.operator_id and o.disabled_at is null
            where m.operator_id = a.id and m.tenant_id = a.tenant_id and m.ended_at is null)
        else true end,
        (select k.successor from api_keys k where a.kind = 'key' and k.id = a.id and k.tenant_id = a.tenant_id)
    from unnest(tenants, kinds, wanted) with ordinality a (tenant_id, kind, id, n);
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function ended_credentials(uuid[], text[], uuid[], timestamptz) from public;
grant execute on function ended_credentials(uuid[], text[], uuid[], timestamptz) to "${APP_ROLE}";

-- +goose Down
drop function ended_credentials(uuid[], text[], uuid[], timestamptz);
alter table api_keys drop column successor;
