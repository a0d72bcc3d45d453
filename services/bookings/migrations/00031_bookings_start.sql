-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Where a booking stands in a list by start: its start, or the first instant of a day without times. Row-level security lets only
-- leakproof comparisons reach an index, so it is a column. A trigger sets it, because the previous version does not know it.
alter table bookings add column sort_starts_at timestamptz;

-- A clock that goes back after midnight shows 00:00 twice, and PostgreSQL takes the later one: the instant after the last
-- microsecond of the day before is the first one.
-- +goose StatementBegin
create function booking_sort_start() returns trigger language plpgsql as $$
begin
    new.sort_starts_at := coalesce(new.starts_at, least(
        new.event_day::timestamp at time zone new.timezone,
        (new.event_day::timestamp - interval '1 microsecond') at time zone new.timezone + interval '1 microsecond'));
    return new;
end
$$;
-- +goose StatementEnd
create trigger bookings_sort_start before insert or update of starts_at, event_day on bookings
    for each row execute function booking_sort_start();

update bookings set sort_starts_at = coalesce(starts_at, least(
    event_day::timestamp at time zone timezone,
    (event_day::timestamp - interval '1 microsecond') at time zone timezone + interval '1 microsecond'));

-- +goose Down
drop trigger bookings_sort_start on bookings;
drop function booking_sort_start;
alter table bookings drop column sort_starts_at;
