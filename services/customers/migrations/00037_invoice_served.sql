-- +goose Up
-- The days of the booking of an invoice, as they were when the invoice was opened. null: a draft, an invoice without a booking, or one
-- that an earlier version opened.
alter table invoices
    add column served_from date,
    add column served_to   date;

-- +goose Down
alter table invoices
    drop column served_from,
    drop column served_to;
