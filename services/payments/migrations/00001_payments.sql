-- +goose Up
-- The accounts of operators at payment gateways. One that was disconnected stays for the intents that were made with it.
create table gateway_accounts (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    provider        text        not null check (provider in ('stripe')),
    account         text        not null,             -- the gateway's own id, acct_…
    country         text        not null,
    publishable_key text        not null,
    secret_key      bytea       not null,             -- sealed
    secret_last4    text        not null,
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    disconnected_at timestamptz,
    primary key (tenant_id, livemode, id)
);
create unique index gateway_accounts_connected on gateway_accounts (tenant_id, livemode) where disconnected_at is null;

-- The secrets that sign an account's webhooks; several while they rotate.
create table gateway_webhook_secrets (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id      uuid        not null,
    id              uuid        not null,
    sealed          bytea       not null,
    last4           text        not null,
    expires_at      timestamptz,                      -- null: it is the current one
    primary key (tenant_id, livemode, account_id, id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);

-- What is known here of the bookings service's rows, kept by its events and by look-ups. It holds nothing personal.
create table bookings (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    customer_id     uuid,
    status          text        not null,
    version         bigint      not null,
    primary key (tenant_id, livemode, id)
);

create table payment_intents (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,             -- ours; the gateway has it in its metadata
    gateway_id      text collate "C",                 -- pi_…; null until the gateway's answer is known
    account_id      uuid        not null,
    status          text        not null check (status in ('creating', 'refused', 'requires_payment_method', 'requires_confirmation',
                                                           'requires_action', 'processing', 'requires_capture', 'canceled', 'succeeded')),
    amount          bigint      not null check (amount > 0),
    currency        text        not null,
    received        bigint      not null default 0,
    capturable      bigint      not null default 0,
    refunded        bigint      not null default 0,
    booking_id      uuid        not null,
    invoice_id      uuid,
    customer_id     uuid,
    capture_method  text        not null check (capture_method in ('automatic', 'manual')),
    description     text,
    receipt_email   text,
    metadata        json,                             -- json, not jsonb: the order of keys and duplicates survive
    failure         json,                             -- domain.Failure
    failed_charge   text,                             -- ch_…, of the last failure that was told
    disputed        boolean     not null default false,
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    succeeded_at    timestamptz,
    canceled_at     timestamptz,
    -- The request that made it, until its key expires.
    credential_id   text,
    key             text,
    fingerprint     bytea,
    -- The call to the gateway that is under way.
    attempt         integer     not null,             -- a part of the gateway's idempotency key: the same for the same effect
    attempted_at    timestamptz not null,             -- when the attempt's first call began: the gateway keeps its key for 24 h
    leased_until    timestamptz,                      -- when another process may go on; null: nothing is under way
    -- Reads of the gateway's state are numbered when they begin, and one that has begun earlier is not applied after a later.
    reads           bigint      not null default 0,
    applied         bigint      not null default 0,
    primary key (tenant_id, livemode, id),
    constraint payment_intents_gateway_id unique (tenant_id, livemode, gateway_id),
    constraint payment_intents_key unique (tenant_id, livemode, credential_id, key),
    constraint payment_intents_known check ((status in ('creating', 'refused')) = (gateway_id is null)),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);
-- Under row-level security only leakproof comparisons reach an index. Intents that the gateway does not know are not listed.
create index payment_intents_created on payment_intents (tenant_id, livemode, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_updated on payment_intents (tenant_id, livemode, updated_at, id) where gateway_id is not null;
create index payment_intents_status on payment_intents (tenant_id, livemode, status, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_booking on payment_intents (tenant_id, livemode, booking_id, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_customer on payment_intents (tenant_id, livemode, customer_id) where customer_id is not null;
create index payment_intents_leased on payment_intents (leased_until) where leased_until is not null;

-- The events that a gateway has sent: each is kept once and worked off by a worker.
create table gateway_events (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id      uuid        not null,
    id              text collate "C" not null,        -- evt_…
    type            text        not null,
    intent          text,                             -- pi_…, of what it speaks; null: of none
    received_at     timestamptz not null,
    tries           integer     not null default 0,
    due_at          timestamptz,                      -- null: worked off
    primary key (tenant_id, livemode, account_id, id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);
create index gateway_events_due on gateway_events (due_at) where due_at is not null;

-- Bookings that were cancelled or have expired, whose open intents a worker cancels at the gateway.
create table lost_bookings (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id      uuid        not null,
    tries           integer     not null default 0,
    due_at          timestamptz not null,
    primary key (tenant_id, livemode, booking_id)
);
create index lost_bookings_due on lost_bookings (due_at);
create index payment_intents_open on payment_intents (tenant_id, livemode, booking_id, id)
    where status in ('creating', 'requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture');

select protect(t) from unnest(array['gateway_accounts', 'gateway_webhook_secrets', 'bookings', 'payment_intents', 'gateway_events',
    'lost_bookings']::regclass[]) t;
select open_to_worker('lost_bookings', 'select, insert');
select open_to_worker('payment_intents', 'select');
select open_to_worker('gateway_events', 'select');
select open_to_worker('bookings', 'select, insert, update');

-- A gateway that sends an event has the id of the account and its signature, and no credential. It runs as the owner, who
-- bypasses row-level security.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function gateway_account_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language sql stable security definer set search_path = public, pg_temp as $$
    select a.tenant_id, a.livemode from gateway_accounts a where a.id = wanted
$$;
-- +goose StatementEnd

-- +goose ENVSUB ON
create index gateway_accounts_id on gateway_accounts (id);
revoke all on function gateway_account_home(uuid) from public;
grant execute on function gateway_account_home(uuid) to "${APP_ROLE}";
grant insert on inbox to "${WORKER_ROLE}";

-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
drop function gateway_account_home(uuid);
drop table lost_bookings, gateway_events, payment_intents, bookings, gateway_webhook_secrets, gateway_accounts;
