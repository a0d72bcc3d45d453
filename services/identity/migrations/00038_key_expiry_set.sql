-- +goose ENVSUB OFF
-- +goose Up
-- Whether a rotation has replaced a key, which then ends at its expires_at like a revoked one. Without a rotation, expires_at was set for
-- the key. It is a function of its own, because the previous release calls key_by_hash.
-- +goose StatementBegin
create function key_replaced(wanted uuid) returns table (replaced boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return query select k.successor is not null from api_keys k where k.id = wanted;
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON
revoke all on function key_replaced(uuid) from public;
grant execute on function key_replaced(uuid) to "${APP_ROLE}";

-- +goose Down
drop function key_replaced(uuid);
