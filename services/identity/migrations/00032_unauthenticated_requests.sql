-- +goose Up
-- The requests with the status 401, which requests_rejected contains too. Days that an earlier version recorded have 0.
alter table usage_days add column requests_unauthenticated bigint not null default 0;

-- +goose Down
alter table usage_days drop column requests_unauthenticated;
