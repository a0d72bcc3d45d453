-- +goose Up
-- An endpoint's own headers. The names can be shown; the names and values together are sealed like a secret.
alter table endpoints
    add column header_names text[] not null default '{}',
    add column sealed_headers bytea; -- null: none

-- +goose Down
alter table endpoints drop column sealed_headers, drop column header_names;
