-- +goose Up
-- Taxes of lines of quotes and invoices that specify none (money.Tax). Null: those of the operator apply.
alter table services add column default_taxes json;

-- +goose Down
alter table services drop column default_taxes;
