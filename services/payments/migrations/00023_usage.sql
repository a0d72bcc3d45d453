-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists ledger_entries_recorded;
-- The movements that were recorded on a day, for metering.
create index concurrently ledger_entries_recorded on ledger_entries (tenant_id, livemode, recorded_at) where ledger_account = 'payments';

-- +goose Down
drop index concurrently if exists ledger_entries_recorded;
