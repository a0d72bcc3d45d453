-- +goose Up
-- null: an earlier version created the quote. It counts as one guest, but is not sent to bookings, so that a resumed acceptance repeats
-- the request under its idempotency key.
alter table quotes add column guest_count integer check (guest_count > 0);

-- +goose Down
alter table quotes drop column guest_count;
