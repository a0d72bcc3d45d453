-- +goose NO TRANSACTION
-- +goose ENVSUB ON
-- +goose Up
-- What of a charge lies on no invoice is put on one that awaits money later, so that its currency and its age are kept. Rows of an
-- earlier version have neither: their currency is the booking's, and they are the oldest.
alter table charges add column if not exists currency text, add column if not exists created_at timestamptz;
alter table charges alter column created_at set default clock_timestamp();
drop index concurrently if exists charges_unallocated;
create index concurrently charges_unallocated on charges (tenant_id, livemode, booking_id, id) where unapplied > refunded;

-- Payments by card may follow the 100 that a client can record.
alter table invoice_payments
    drop constraint if exists invoice_payments_position_check,
    add constraint invoice_payments_position_check check (position between 1 and 200) not valid;
alter table invoice_payments validate constraint invoice_payments_position_check;

-- The worker looks for bookings with money that lies on no invoice.
drop policy if exists worker on charges;
select open_to_worker('charges', 'select');

-- +goose Down
drop policy if exists worker on charges;
revoke select on charges from "${WORKER_ROLE}";
alter table invoice_payments
    drop constraint if exists invoice_payments_position_check,
    add constraint invoice_payments_position_check check (position between 1 and 100) not valid;
drop index concurrently if exists charges_unallocated;
alter table charges drop column if exists created_at, drop column if exists currency;
