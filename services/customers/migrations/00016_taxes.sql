-- +goose Up
-- The amounts, discounts and taxes of the lines, as store/pricing.go describes them. Null: written by a version that had one rate per
-- line and rounded per line. That version ignores the column, and can change the lines without it.
alter table quotes add column pricing json;
alter table invoices add column pricing json;

-- The service of a booking, by which the taxes of its invoices are looked up. described is false if an earlier version wrote the row.
alter table bookings
    add column service_id uuid,
    add column described  boolean not null default false;

-- The service of a package, and the default taxes of a service (money.Tax; null: those of the operator). They belong to the version
-- details_version of the item, which is another one than version if an earlier version of the service wrote the row.
alter table catalogue_items
    add column details_version bigint,
    add column service_id      uuid,
    add column default_taxes   json;

-- +goose Down
alter table catalogue_items drop column default_taxes, drop column service_id, drop column details_version;
alter table bookings drop column described, drop column service_id;
alter table invoices drop column pricing;
alter table quotes drop column pricing;
