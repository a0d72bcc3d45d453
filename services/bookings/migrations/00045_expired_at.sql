-- +goose Up
-- When a test clock ended the hold, in real time. Null: the hold expired at hold_expires_at, or has not expired.
alter table bookings add column expired_at timestamptz;

-- +goose Down
alter table bookings drop column expired_at;
