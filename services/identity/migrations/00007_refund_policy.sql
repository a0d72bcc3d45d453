-- +goose Up
-- What goes back to the cards by the booking policy; refund_rules null: nothing is said.
alter table tenants
    add column refund_rules         json,             -- domain.RefundRule, the most hours first
    add column auto_refund          boolean not null default false,
    add column refund_late_payments boolean not null default false;

-- +goose Down
alter table tenants drop column refund_late_payments, drop column auto_refund, drop column refund_rules;
