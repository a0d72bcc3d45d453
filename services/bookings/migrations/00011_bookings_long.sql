-- +goose NO TRANSACTION
-- +goose Up
-- A question for the bookings that share time with a range of days reads most of them by the day on which they begin. Those of more
-- than a day may have begun long before: each belongs to one of these indexes by its length, so that few are read that ended before.
drop index concurrently if exists bookings_over_1_day;
create index concurrently bookings_over_1_day on bookings (tenant_id, livemode, starts_at)
    where ends_at - starts_at > interval '1 day' and ends_at - starts_at <= interval '8 days';
drop index concurrently if exists bookings_over_8_days;
create index concurrently bookings_over_8_days on bookings (tenant_id, livemode, starts_at)
    where ends_at - starts_at > interval '8 days' and ends_at - starts_at <= interval '64 days';
drop index concurrently if exists bookings_over_64_days;
create index concurrently bookings_over_64_days on bookings (tenant_id, livemode, ends_at)
    where ends_at - starts_at > interval '64 days';

-- +goose Down
drop index concurrently if exists bookings_over_64_days;
drop index concurrently if exists bookings_over_8_days;
drop index concurrently if exists bookings_over_1_day;
