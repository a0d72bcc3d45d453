-- +goose Up
-- Whether the payment gateway's events reach the platform, as payments has found.
alter table gateway_accounts add column events text not null default 'ok';

-- +goose Down
alter table gateway_accounts drop column events;
