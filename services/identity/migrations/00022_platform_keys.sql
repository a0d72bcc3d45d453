-- +goose ENVSUB ON
-- +goose Up
-- Credentials of the platform API. They belong to no tenant. Everything they change is in the audit log of the tenant.
create table platform_keys (
    id           uuid        primary key,
    name         text        not null,
    hash         bytea       not null constraint platform_keys_hash_key unique, -- SHA-256; the key itself is nowhere
    scopes       text[]      not null,
    created_at   timestamptz not null,
    created_by   text        not null, -- who created it, and from where
    last_used_at timestamptz, -- exact to a minute
    revoked_at   timestamptz,
    revoked_by   text
);
grant select, insert on platform_keys to "${APP_ROLE}";
grant update (last_used_at, revoked_at, revoked_by) on platform_keys to "${APP_ROLE}";

-- +goose Down
drop table platform_keys;
