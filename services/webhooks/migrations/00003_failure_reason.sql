-- +goose Up
alter table deliveries add column failure_reason text; -- of a failed one: attempts_exhausted, expired, endpoint_disabled
alter table endpoints add column failed_waiting integer not null default 0; -- deliveries that the last disabling by the platform failed
alter table deliveries add column erased boolean not null default false; -- with the person of its event: receivers' answers are not kept

-- +goose Down
alter table deliveries drop column erased;
alter table endpoints drop column failed_waiting;
alter table deliveries drop column failure_reason;
