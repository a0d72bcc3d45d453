-- +goose Up
-- The language of documents, and the bank account that they show; empty: nothing.
alter table tenants
    add column locale              text, -- BCP 47; null: that of the country
    add column bank_account_holder text not null default '',
    add column bank_account_number text not null default '', -- an IBAN has no spaces
    add column bank_code           text not null default '',
    add column bank_name           text not null default '';

-- +goose Down
alter table tenants drop column bank_name, drop column bank_code, drop column bank_account_number, drop column bank_account_holder, drop column locale;
