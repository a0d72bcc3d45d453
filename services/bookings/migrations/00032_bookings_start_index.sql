-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists bookings_starts;
create index concurrently bookings_starts on bookings (tenant_id, livemode, sort_starts_at, id);

-- +goose Down
drop index concurrently if exists bookings_starts;
