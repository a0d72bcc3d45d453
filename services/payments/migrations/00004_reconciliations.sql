-- +goose ENVSUB ON
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Worked off events are deleted after a while; those that are due say which intents are about to be read.
create index gateway_events_done on gateway_events (received_at) where due_at is null;
create index gateway_events_of_intent on gateway_events (tenant_id, livemode, account_id, intent) where due_at is not null;
grant delete on gateway_events to "${WORKER_ROLE}";

-- How far the comparison of each account with the gateway has come. One process has it at once.
create table gateway_reconciliations (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id      uuid        not null,
    due_at          timestamptz not null,             -- when a process may take it
    tries           integer     not null default 0,   -- in a row that have failed
    stage           text        not null default 'intents' check (stage in ('intents', 'refunds', 'disputes')),
    cursor          text        not null default '',  -- the last object of the page that was compared; '': the first page is next
    started_at      timestamptz,                      -- of the run; null: none is under way
    finished_at     timestamptz not null,             -- of the last run; of the first one it is when it was noted
    primary key (tenant_id, livemode, account_id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);
create index gateway_reconciliations_due on gateway_reconciliations (due_at);

select protect('gateway_reconciliations');
select open_to_worker('gateway_reconciliations', 'select, insert');
-- The reconciler, and the command reseal.
select open_to_worker('gateway_accounts', 'select, update');
select open_to_worker('gateway_webhook_secrets', 'select, update');

-- +goose Down
revoke select, update on gateway_accounts, gateway_webhook_secrets from "${WORKER_ROLE}";
drop policy worker on gateway_accounts;
drop policy worker on gateway_webhook_secrets;
drop table gateway_reconciliations;
revoke delete on gateway_events from "${WORKER_ROLE}";
drop index gateway_events_done, gateway_events_of_intent;
