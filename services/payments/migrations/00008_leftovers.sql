-- +goose ENVSUB ON
-- migrationlint:allow column-rewrite: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Intents and refunds that the gateway has refused to make are deleted after a while, with what belongs to them.
create index payment_intents_refused on payment_intents (created_at) where status = 'refused';
create index refunds_refused on refunds (created_at) where status = 'refused' and not shown;
grant delete on payment_intents, refunds to "${WORKER_ROLE}";
select open_to_worker('payment_intent_metadata', 'select, delete');
select open_to_worker('refund_metadata', 'select, delete');
select open_to_worker('refund_allocations', 'select, delete');

-- Since when a booking waits.
alter table lost_bookings add column noted_at timestamptz not null default clock_timestamp();
alter table booking_settlements add column noted_at timestamptz not null default clock_timestamp();

-- Accounts are never deleted. The check of these keys locks the account's row, which all payments of an operator share.
alter table gateway_events drop constraint gateway_events_tenant_id_livemode_account_id_fkey;
alter table ledger_entries drop constraint ledger_entries_tenant_id_livemode_account_id_fkey;

-- It keeps its plan, as a function in SQL does not.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create or replace function gateway_account_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return query select a.tenant_id, a.livemode from gateway_accounts a where a.id = wanted;
end $$;
-- +goose StatementEnd
-- +goose ENVSUB ON

-- +goose Down
alter table ledger_entries add foreign key (tenant_id, livemode, account_id) references gateway_accounts;
alter table gateway_events add foreign key (tenant_id, livemode, account_id) references gateway_accounts;
alter table booking_settlements drop column noted_at;
alter table lost_bookings drop column noted_at;
revoke select, delete on payment_intent_metadata, refund_metadata, refund_allocations from "${WORKER_ROLE}";
drop policy worker on payment_intent_metadata;
drop policy worker on refund_metadata;
drop policy worker on refund_allocations;
revoke delete on payment_intents, refunds from "${WORKER_ROLE}";
drop index payment_intents_refused, refunds_refused;
