-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists bookings_unit_day;
create index concurrently bookings_unit_day on bookings (tenant_id, livemode, unit_id, event_day, id);

-- +goose Down
drop index concurrently if exists bookings_unit_day;
