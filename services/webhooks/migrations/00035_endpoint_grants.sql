-- +goose NO TRANSACTION
-- +goose Up
-- The enabled endpoints that a grant holds, for the worker that disables them when the grant ends.
drop index concurrently if exists endpoints_grant;
create index concurrently endpoints_grant on endpoints (tenant_id, livemode, holder) where status = 'enabled' and holder like 'gr\_%';

-- +goose Down
drop index concurrently if exists endpoints_grant;
