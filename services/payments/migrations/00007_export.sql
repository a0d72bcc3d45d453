-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- The intents of a customer in the order in which an export reads them.
create index payment_intents_of_customer on payment_intents (tenant_id, livemode, customer_id, created_at desc, id desc) where customer_id is not null;
drop index payment_intents_customer;

-- +goose Down
create index payment_intents_customer on payment_intents (tenant_id, livemode, customer_id) where customer_id is not null;
drop index payment_intents_of_customer;
