-- +goose NO TRANSACTION
-- +goose Up
-- A converted lead has one booking, for ever. The booking of a quote names the quote's lead too, which may have others.
drop index concurrently if exists bookings_lead;
create unique index concurrently bookings_lead on bookings (tenant_id, livemode, lead_id)
    where lead_id is not null and quote_id is null;

-- +goose Down
drop index concurrently if exists bookings_lead;
