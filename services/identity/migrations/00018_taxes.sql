-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- What applies to quotes and invoices that specify no taxes.
alter table tenants
    add column tax_behavior  text not null default 'exclusive' check (tax_behavior in ('exclusive', 'inclusive')),
    add column default_taxes json not null default '[]'; -- money.Tax

-- +goose Down
alter table tenants drop column default_taxes, drop column tax_behavior;
