-- +goose Up
-- The image that documents show. A change of another column does not copy it, because it is stored out of line.
alter table tenants
    add column logo      bytea, -- PNG or JPEG
    add column logo_hash text not null default '', -- SHA-256 of the logo in hexadecimal; empty: there is none
    add constraint tenants_logo check ((logo is null) = (logo_hash = '')) not valid;

-- +goose Down
alter table tenants drop column logo_hash, drop column logo;
