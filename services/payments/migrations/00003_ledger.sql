-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- All movements of money at the gateway, in double entry: the entries of a movement add up to 0 in each currency. Append only.
create table ledger_entries (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id      uuid        not null,             -- the gateway account
    movement        text collate "C" not null,        -- txn_…, the gateway's balance transaction
    ledger_account  text        not null check (ledger_account in ('gateway_balance', 'gateway_fees', 'payments', 'conversion')),
    currency        text        not null,             -- of ISO 4217
    amount          bigint      not null,             -- in the smallest unit; what the account gains
    kind            text        not null check (kind in ('charge', 'charge_failed', 'refund', 'refund_failed', 'dispute', 'dispute_reversed')),
    object          text collate "C" not null,        -- ch_…, re_… or dp_…, what has moved the money
    intent_id       uuid        not null,
    moved_at        timestamptz not null,             -- the gateway's time
    recorded_at     timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, account_id, movement, ledger_account, currency),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts,
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index ledger_entries_intent on ledger_entries (tenant_id, livemode, intent_id, moved_at, movement);

-- Disputes of charges, as the gateway tells them.
create table disputes (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              text collate "C" not null,        -- dp_… or du_…, the gateway's
    account_id      uuid        not null,
    intent_id       uuid        not null,
    charge          text collate "C" not null,        -- ch_…
    amount          bigint      not null,
    currency        text        not null,
    reason          text        not null,             -- in the gateway's words
    status          text        not null,             -- the gateway's
    due_by          timestamptz,                      -- until when the operator can answer; null: no more
    opened_at       timestamptz not null,             -- the gateway's time
    closed_at       timestamptz,                      -- when its end was read; null: it is open
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts,
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index disputes_intent on disputes (tenant_id, livemode, intent_id, id);

-- The failed charges of which an event was emitted, so that each has one.
create table failed_charges (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    intent_id       uuid        not null,
    id              text collate "C" not null,        -- ch_…
    primary key (tenant_id, livemode, intent_id, id),
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
insert into failed_charges (tenant_id, livemode, intent_id, id)
    select p.tenant_id, p.livemode, p.id, p.failed_charge from payment_intents p where p.failed_charge is not null;

alter table payment_intents
    add column charge text,                                        -- ch_…, up to which the intent's charges were read
    add column ever_disputed boolean not null default false;       -- its disputes are read each time

select protect(t) from unnest(array['ledger_entries', 'disputes', 'failed_charges']::regclass[]) t;

-- The check runs as the owner, who sees the rows of all tenants, at the end of the transaction.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function ledger_balances() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if exists (
        select from ledger_entries l
        where l.tenant_id = new.tenant_id and l.livemode = new.livemode and l.account_id = new.account_id and l.movement = new.movement
        group by l.currency having sum(l.amount) <> 0
    ) then
        raise exception 'the entries of movement % do not add up to 0', new.movement using errcode = 'check_violation', constraint = 'ledger_balances';
    end if;
    return null;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create function ledger_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the ledger is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger append_only before update or delete or truncate on ledger_entries
    for each statement execute function ledger_is_append_only();

-- +goose ENVSUB ON
revoke all on function ledger_balances() from public;
create constraint trigger ledger_balances after insert on ledger_entries deferrable initially deferred
    for each row execute function ledger_balances();
revoke update, delete, truncate on ledger_entries from "${APP_ROLE}";
revoke delete on disputes, failed_charges from "${APP_ROLE}";

-- +goose Down
drop table failed_charges, disputes, ledger_entries;
drop function ledger_balances(), ledger_is_append_only();
alter table payment_intents drop column charge, drop column ever_disputed;
