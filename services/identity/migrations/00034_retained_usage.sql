-- +goose Up
-- The last invoice of an erased tenant rests on its usage, which contains its id and numbers only. So the rows stay.
-- +goose StatementBegin
create function usage_outlives_tenant() returns trigger language plpgsql as $$
begin
    if is_erasing(tg_relid) then
        return null;
    end if;
    return old;
end $$;
-- +goose StatementEnd
create trigger outlives_tenant before delete on usage_days for each row execute function usage_outlives_tenant();

-- +goose Down
drop trigger outlives_tenant on usage_days;
drop function usage_outlives_tenant();
