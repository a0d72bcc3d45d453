-- +goose Up
-- What the tenant's invoices and quotes show of it; empty: nothing.
alter table tenants
    add column invoice_prefix text    not null default 'INV-',
    add column invoice_year   boolean not null default false, -- whether the year follows the prefix
    add column legal_name     text    not null default '',
    add column address        text    not null default '',
    add column tax_id         text    not null default '';

-- +goose Down
alter table tenants drop column tax_id, drop column address, drop column legal_name, drop column invoice_year, drop column invoice_prefix;
