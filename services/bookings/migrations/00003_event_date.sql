-- +goose Up
alter table bookings add column event_at timestamptz; -- the instant that was given for the day; null: the day's first

-- +goose Down
alter table bookings drop column event_at;
