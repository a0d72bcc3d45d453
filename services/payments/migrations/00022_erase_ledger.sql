-- +goose Up
-- The ledger is append only, except for the erasure of a tenant.
-- +goose StatementBegin
create or replace function ledger_is_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and is_erasing(tg_relid) then
        return null;
    end if;
    raise exception 'the ledger is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function ledger_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the ledger is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
