-- +goose Up
-- null: an earlier version created the quote. It counts as one guest, but is not sent to bookings, so that a resumed acceptance repeats
-- the request under its idempotency key.
alter table quotes add column guest_count integer;
alter table quotes add constraint quotes_guest_count_check check (guest_count > 0) not valid;

-- +goose Down
alter table quotes drop column guest_count;
