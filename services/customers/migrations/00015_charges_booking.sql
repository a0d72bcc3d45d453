-- +goose NO TRANSACTION
-- +goose Up
-- What was taken for a booking by card, whether or not it lies on an invoice.
drop index concurrently if exists charges_booking;
create index concurrently charges_booking on charges (tenant_id, livemode, booking_id);

-- +goose Down
drop index concurrently if exists charges_booking;
