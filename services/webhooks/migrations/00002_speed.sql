-- +goose Up
-- Until when an endpoint counts as slow: a minute after its last attempt that took a second or more. Null: it has not
-- answered yet.
alter table lanes add column slow_until timestamptz;

-- +goose Down
alter table lanes drop column slow_until;
