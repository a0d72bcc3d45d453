-- +goose Up
-- What others had refunded of each payment when it became known that the booking is lost, by the gateway's ids, without those of which
-- nothing was. Null in rows that the version before has written.
alter table booking_settlements add column elsewhere json;

-- +goose Down
alter table booking_settlements drop column elsewhere;
