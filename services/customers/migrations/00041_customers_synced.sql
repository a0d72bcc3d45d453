-- +goose NO TRANSACTION
-- +goose Up
-- sort=updated_at also lists erased customers. The index that leaves them out is no longer needed.
drop index concurrently if exists customers_synced;
create index concurrently customers_synced on customers (tenant_id, livemode, updated_at, id);
drop index concurrently if exists customers_updated;

-- +goose Down
create index concurrently customers_updated on customers (tenant_id, livemode, updated_at, id) where erased_at is null;
drop index concurrently if exists customers_synced;
