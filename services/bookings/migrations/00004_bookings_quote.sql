-- +goose NO TRANSACTION
-- +goose Up
-- A quote has one booking, for ever. The index has a file of its own: it is built while bookings are written.
drop index concurrently if exists bookings_quote;
create unique index concurrently bookings_quote on bookings (tenant_id, livemode, quote_id)
    where quote_id is not null;

-- +goose Down
drop index concurrently if exists bookings_quote;
