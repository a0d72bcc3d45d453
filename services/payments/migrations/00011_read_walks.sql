-- +goose Up
-- How far the charges and the refunds of an intent were read, whose lists the gateway gives the newest first: all up to charge and refund,
-- and while there is none of them, the oldest one on the way back to the first.
alter table payment_intents
    add column charge_back text collate "C",
    add column refund      text collate "C",
    add column refund_back text collate "C";

-- +goose Down
alter table payment_intents drop column refund_back, drop column refund, drop column charge_back;
