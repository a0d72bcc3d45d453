-- +goose NO TRANSACTION
-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow constraint-scan: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Open objects are compared with the gateway one by one, in the order of the gateway's ids. Under row-level security only leakproof
-- comparisons reach an index.
drop index concurrently if exists payment_intents_unended;
create index concurrently payment_intents_unended on payment_intents (tenant_id, livemode, account_id, gateway_id)
    where status in ('requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture', 'processing');
drop index concurrently if exists refund_allocations_unended;
create index concurrently refund_allocations_unended on refund_allocations (tenant_id, livemode, gateway_id)
    where status in ('pending', 'requires_action');
drop index concurrently if exists disputes_unended;
create index concurrently disputes_unended on disputes (tenant_id, livemode, account_id, id) where closed_at is null;
-- The events of an account that were worked off, the newest first: the oldest ones over a bound are deleted.
drop index concurrently if exists gateway_events_done_of_account;
create index concurrently gateway_events_done_of_account on gateway_events (tenant_id, livemode, account_id, received_at desc) where due_at is null;

alter table gateway_reconciliations
    add column if not exists events_until  timestamptz,                -- the gateway's events before it were read; null: none were
    add column if not exists events_seen   integer not null default 0, -- of the run, that had been received
    add column if not exists events_missed integer not null default 0, -- of the run, that had not been received
    add column if not exists opened_at     timestamptz;                -- start of the last run that has compared the open objects
-- The version before leaves a stage that it does not know to the next run.
alter table gateway_reconciliations drop constraint if exists gateway_reconciliations_stage_check;
alter table gateway_reconciliations add constraint gateway_reconciliations_stage_check
    check (stage in ('events', 'intents', 'refunds', 'disputes', 'open_intents', 'open_refunds', 'open_disputes'));

-- Whether the gateway's events reach this platform, as the last comparison has found.
alter table gateway_accounts add column if not exists events text not null default 'ok' check (events in ('ok', 'missing', 'late'));

-- +goose Down
alter table gateway_accounts drop column events;
update gateway_reconciliations set stage = 'intents', cursor = '' where stage not in ('intents', 'refunds', 'disputes');
alter table gateway_reconciliations drop constraint gateway_reconciliations_stage_check;
alter table gateway_reconciliations add constraint gateway_reconciliations_stage_check check (stage in ('intents', 'refunds', 'disputes'));
alter table gateway_reconciliations drop column events_until, drop column events_seen, drop column events_missed, drop column opened_at;
drop index concurrently if exists gateway_events_done_of_account;
drop index concurrently if exists disputes_unended;
drop index concurrently if exists refund_allocations_unended;
drop index concurrently if exists payment_intents_unended;
