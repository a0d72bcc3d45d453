-- +goose NO TRANSACTION
-- +goose Up
-- The bookings that take some of a local day after their first one, by their own clock: a list of a day finds the night before it.
drop index concurrently if exists bookings_past_day;
create index concurrently bookings_past_day on bookings (tenant_id, livemode, event_day)
    where ends_at at time zone timezone > event_day + 1;

-- +goose Down
drop index concurrently if exists bookings_past_day;
