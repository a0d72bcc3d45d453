-- +goose Up
-- The credential that created an endpoint, and the one with which the endpoint ends: null for endpoints of earlier versions.
alter table endpoints
    add column created_by text,
    add column holder text;

-- +goose Down
alter table endpoints drop column holder, drop column created_by;
