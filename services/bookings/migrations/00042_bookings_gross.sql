-- +goose Up
-- What a booking comes to with taxes, and its taxes (domain.Taxes). Null: an earlier version priced the booking, and its total is the
-- gross amount.
alter table bookings add column gross bigint, add column taxes json;

-- +goose Down
alter table bookings drop column gross, drop column taxes;
