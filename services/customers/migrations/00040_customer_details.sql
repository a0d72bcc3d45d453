-- +goose Up
alter table customers
    add column tax_id          text,
    add column billing_address json,
    add column country         text,
    add column locale          text;

-- The previous version does not know the new columns. Its erasures clear them too.
-- +goose StatementBegin
create function clear_erased_customer() returns trigger language plpgsql as $$
begin
    new.tax_id := null;
    new.billing_address := null;
    new.country := null;
    new.locale := null;
    return new;
end $$;
-- +goose StatementEnd
create trigger clear_erased_customer before update of erased_at on customers
    for each row when (new.erased_at is not null) execute function clear_erased_customer();

-- +goose Down
drop trigger clear_erased_customer on customers;
drop function clear_erased_customer();
alter table customers
    drop column tax_id,
    drop column billing_address,
    drop column country,
    drop column locale;
