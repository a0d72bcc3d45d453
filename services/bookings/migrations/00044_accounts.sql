-- migrationlint:allow drop-column: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Money belongs to payments, and documents belong to customers. These columns are copies from their events, which show what is due.
alter table bookings
    add column account_version bigint  not null default 0,     -- of the account at payments that paid and refunded show
    add column invoiced        bigint  not null default 0,     -- sums of its invoices: totals,
    add column dues            bigint  not null default 0,     -- amounts due,
    add column placed          bigint  not null default 0,     -- payments,
    add column credited        bigint  not null default 0,     -- and credit notes
    add column deposit_paid    boolean not null default false, -- it has a deposit invoice, and nothing is due on any
    add column ended_account   json;                           -- domain.AccountState when it was cancelled; null: it was not, or before this column

-- The sums of an invoice. Until its next event, an existing one counts as a draft, so its payments count as money on no invoice.
alter table booking_invoices
    add column currency text    not null default '',
    add column opened   boolean not null default false, -- it is neither a draft nor void
    add column deposit  boolean not null default false,
    add column total    bigint  not null default 0,
    add column due      bigint  not null default 0,
    add column paid     bigint  not null default 0,
    add column credited bigint  not null default 0;

-- Payments knows by the version of the account which payments are late. The version of a payment is that of the account; 0: the account
-- has not reported it.
update booking_payments set version = 0 where version <> 0;
alter table booking_payments drop column late;

-- +goose Down
alter table booking_payments add column late boolean not null default false;
alter table booking_invoices
    drop column credited, drop column paid, drop column due, drop column total, drop column deposit, drop column opened, drop column currency;
alter table bookings
    drop column ended_account, drop column deposit_paid, drop column credited, drop column placed, drop column dues, drop column invoiced,
    drop column account_version;
