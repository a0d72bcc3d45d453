-- +goose ENVSUB ON
-- +goose Up
-- The accounts of operators at payment gateways. One that was disconnected stays for the intents that were created with it. Accounts are
-- never deleted.
create table gateway_accounts (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    provider        text        not null check (provider in ('stripe')),
    account         text        not null, -- the gateway's own id, acct_…
    country         text        not null,
    publishable_key text        not null,
    secret_key      bytea       not null, -- sealed
    secret_last4    text        not null,
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    disconnected_at timestamptz,
    events          text        not null default 'ok' -- whether the gateway's events reach this platform, as the last comparison has found
                                check (events in ('ok', 'missing', 'late')),
    primary key (tenant_id, livemode, id)
);
create index gateway_accounts_id on gateway_accounts (id);
create unique index gateway_accounts_connected on gateway_accounts (tenant_id, livemode) where disconnected_at is null;

-- The secrets that sign an account's webhooks; several while they rotate.
create table gateway_webhook_secrets (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id uuid        not null,
    id         uuid        not null,
    sealed     bytea       not null,
    last4      text        not null,
    expires_at timestamptz, -- null: it is the current one
    primary key (tenant_id, livemode, account_id, id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);

-- The events that a gateway has sent: each is kept once and processed by a worker. A foreign key would lock the account's row, which all
-- payments of an operator share.
create table gateway_events (
    tenant_id   uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id  uuid             not null,
    id          text collate "C" not null, -- evt_…
    type        text             not null,
    intent      text,                      -- pi_…, that the event is about; null: none
    received_at timestamptz      not null,
    tries       integer          not null default 0,
    due_at      timestamptz,               -- null: processed
    refund      text,                      -- re_…, that the event is about; null: none
    primary key (tenant_id, livemode, account_id, id)
);
create index gateway_events_due on gateway_events (due_at) where due_at is not null;
-- Processed events are deleted after a while, and the oldest ones of an account over a bound. Those that are due say which intents are
-- about to be read.
create index gateway_events_done on gateway_events (received_at) where due_at is null;
create index gateway_events_done_of_account on gateway_events (tenant_id, livemode, account_id, received_at desc) where due_at is null;
create index gateway_events_of_intent on gateway_events (tenant_id, livemode, account_id, intent) where due_at is not null;

-- How far the comparison of each account with the gateway has come. One process has it at once.
create table gateway_reconciliations (
    tenant_id     uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode      boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id    uuid        not null,
    due_at        timestamptz not null,            -- when a process may take it
    tries         integer     not null default 0,  -- in a row that have failed
    stage         text        not null default 'intents'
                              check (stage in ('events', 'intents', 'refunds', 'disputes', 'open_intents', 'open_refunds', 'open_disputes')),
    cursor        text        not null default '', -- the last object of the page that was compared; '': the first page is next
    started_at    timestamptz,                     -- of the run; null: none is in progress
    finished_at   timestamptz not null,            -- of the last run; of the first one it is when it was noted
    events_until  timestamptz,                     -- the gateway's events before it were read; null: none were
    events_seen   integer     not null default 0,  -- of the run, that had been received
    events_missed integer     not null default 0,  -- of the run, that had not been received
    opened_at     timestamptz,                     -- start of the last run that has compared the open objects
    primary key (tenant_id, livemode, account_id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);
create index gateway_reconciliations_due on gateway_reconciliations (due_at);

-- What is known here of the bookings service's rows, kept by its events and by look-ups. It holds nothing personal.
create table bookings (
    tenant_id   uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id          uuid    not null,
    customer_id uuid,
    status      text    not null,
    version     bigint  not null,
    primary key (tenant_id, livemode, id)
);

create table payment_intents (
    tenant_id          uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode           boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                 uuid        not null,          -- ours; the gateway has it in its metadata
    gateway_id         text        collate "C",       -- pi_…; null until the gateway's response is known
    account_id         uuid        not null,
    status             text        not null check (status in ('creating', 'refused', 'requires_payment_method', 'requires_confirmation',
                                                              'requires_action', 'processing', 'requires_capture', 'canceled', 'succeeded')),
    amount             bigint      not null check (amount > 0),
    currency           text        not null,
    received           bigint      not null default 0,
    capturable         bigint      not null default 0,
    refunded           bigint      not null default 0,
    booking_id         uuid        not null,
    invoice_id         uuid,
    customer_id        uuid,
    capture_method     text        not null check (capture_method in ('automatic', 'manual')),
    description        text,
    receipt_email      text,
    metadata           json,                          -- json, not jsonb: the order of keys and duplicates survive
    failure            json,                          -- domain.Failure
    failed_charge      text,                          -- ch_…, of the last failure that was reported
    disputed           boolean     not null default false,
    version            bigint      not null default 1,
    created_at         timestamptz not null,
    updated_at         timestamptz not null,
    succeeded_at       timestamptz,
    canceled_at        timestamptz,
    -- The call to the gateway that is in progress.
    attempt            integer     not null,          -- a part of the gateway's idempotency key: the same for the same effect
    attempted_at       timestamptz not null,          -- when the attempt's first call began: the gateway keeps its key for 24 h
    leased_until       timestamptz,                   -- when another process may continue; null: nothing is in progress
    -- Reads of the gateway's state are numbered when they begin, and one that has begun earlier is not applied after a later.
    reads              bigint      not null default 0,
    applied            bigint      not null default 0,
    -- What holds an intent's money for refunds, under the lock of its row: no refund can be of more than was received.
    refund_reserved    bigint      not null default 0, -- by refunds of this platform that are in progress or completed
    refunded_elsewhere bigint      not null default 0, -- by others, such as in the gateway's dashboard, when it was last read
    -- How far the charges and the refunds of an intent were read, whose lists the gateway returns newest first: all up to charge and refund,
    -- and while there is none of them, the oldest one on the way back to the first.
    charge             text,                          -- ch_…
    ever_disputed      boolean     not null default false, -- its disputes are read each time
    settled            boolean     not null default false, -- whether it was decided if it is refunded because its booking is lost
    begun_at           timestamptz,                   -- when the first call of the request began; null: at attempted_at
    charge_back        text        collate "C",
    refund             text        collate "C",
    refund_back        text        collate "C",
    lost               bigint      not null default 0, -- what lost disputes have taken back, beyond the refunds
    primary key (tenant_id, livemode, id),
    constraint payment_intents_gateway_id unique (tenant_id, livemode, gateway_id),
    constraint payment_intents_known check ((status in ('creating', 'refused')) = (gateway_id is null)),
    constraint payment_intents_reserved check (refund_reserved between 0 and received),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts
);
-- Under row-level security only leakproof comparisons reach an index. Intents that the gateway does not know are not listed.
create index payment_intents_created on payment_intents (tenant_id, livemode, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_updated on payment_intents (tenant_id, livemode, updated_at, id) where gateway_id is not null;
create index payment_intents_status on payment_intents (tenant_id, livemode, status, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_booking on payment_intents (tenant_id, livemode, booking_id, created_at desc, id desc) where gateway_id is not null;
create index payment_intents_of_customer on payment_intents (tenant_id, livemode, customer_id, created_at desc, id desc) where customer_id is not null;
create index payment_intents_leased on payment_intents (leased_until) where leased_until is not null;
create index payment_intents_open on payment_intents (tenant_id, livemode, booking_id, id)
    where status in ('creating', 'requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture');
-- Open objects are compared with the gateway one by one, in the order of the gateway's ids.
create index payment_intents_unended on payment_intents (tenant_id, livemode, account_id, gateway_id)
    where status in ('requires_payment_method', 'requires_confirmation', 'requires_action', 'requires_capture', 'processing');
-- Intents that the gateway has refused to create are deleted after a while, with what belongs to them.
create index payment_intents_refused on payment_intents (created_at) where status = 'refused';

-- The pairs of metadata, written with their rows: an index that SQL cannot declare.
create table payment_intent_metadata (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key       text collate "C" not null,
    value     text collate "C" not null,
    intent_id uuid             not null,
    primary key (tenant_id, livemode, key, value, intent_id),
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index payment_intent_metadata_intent on payment_intent_metadata (tenant_id, livemode, intent_id);

-- The failed charges of which an event was emitted, so that each has one.
create table failed_charges (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    intent_id uuid             not null,
    id        text collate "C" not null, -- ch_…
    primary key (tenant_id, livemode, intent_id, id),
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);

-- Disputes of charges, as the gateway reports them.
create table disputes (
    tenant_id  uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id         text collate "C" not null, -- dp_… or du_…, the gateway's
    account_id uuid             not null,
    intent_id  uuid             not null,
    charge     text collate "C" not null, -- ch_…
    amount     bigint           not null,
    currency   text             not null,
    reason     text             not null, -- in the gateway's words
    status     text             not null, -- the gateway's
    due_by     timestamptz,               -- until when the operator can respond; null: no more
    opened_at  timestamptz      not null, -- the gateway's time
    closed_at  timestamptz,               -- when its end was read; null: it is open
    version    bigint           not null default 1,
    created_at timestamptz      not null,
    updated_at timestamptz      not null,
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, account_id) references gateway_accounts,
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index disputes_intent on disputes (tenant_id, livemode, intent_id, id);
create index disputes_unended on disputes (tenant_id, livemode, account_id, id) where closed_at is null;

-- Bookings that were cancelled or have expired, whose open intents a worker cancels at the gateway.
create table lost_bookings (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id uuid        not null,
    tries      integer     not null default 0,
    due_at     timestamptz not null,
    noted_at   timestamptz not null default clock_timestamp(), -- since when the booking waits
    primary key (tenant_id, livemode, booking_id)
);
create index lost_bookings_due on lost_bookings (due_at);

-- Bookings that were cancelled or have expired with payments that are not settled, which a worker settles.
create table booking_settlements (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id uuid        not null,
    tries      integer     not null default 0,
    due_at     timestamptz not null,
    noted_at   timestamptz not null default clock_timestamp(), -- since when the booking waits
    primary key (tenant_id, livemode, booking_id)
);
create index booking_settlements_due on booking_settlements (due_at);

-- What a policy owes a payer, each once: for a cancelled booking, or for a late payment. A row is open until refunds have returned it, or
-- a person closes it.
create table automatic_refunds (
    tenant_id        uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode         boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    cause            text             not null check (cause in ('cancelled', 'late')),
    subject          text collate "C" not null,           -- the id of the booking, or the gateway's of the payment
    refund_id        uuid,                                -- null: nothing was left to refund by card
    wanted           bigint           not null check (wanted > 0),
    created_at       timestamptz      not null default clock_timestamp(),
    id               uuid,
    booking_id       uuid,
    currency         text,                                -- of wanted
    state            text             not null default 'open' check (state in ('open', 'done', 'closed')),
    remaining        bigint,                              -- what was not returned at the last check; null: not checked yet
    tries            integer          not null default 0, -- refunds that were created for it
    due_at           timestamptz      default '1970-01-01 00:00:00+00', -- of the next check; null: none by itself
    retry_at         timestamptz,                         -- until then no payment is tried again whose refund has failed
    failed_at        timestamptz,                         -- since when it cannot be returned; null: nothing has failed
    failure          json,                                -- domain.Failure, the last one
    closed_at        timestamptz,
    closed_by        text,                                -- op_…
    closed_note      text,
    version          bigint           not null default 1,
    -- The booking's account of money when the booking was cancelled, as bookings reports it. What the account has returned since then counts
    -- toward what is owed, and payments that it has received since then are late.
    account_version  bigint           not null default 0,
    account_returned bigint           not null default 0, -- what that version had returned, including refunds that had begun
    primary key (tenant_id, livemode, cause, subject)
);
create unique index automatic_refunds_id on automatic_refunds (tenant_id, livemode, id);
create index automatic_refunds_booking on automatic_refunds (tenant_id, livemode, booking_id);
create index automatic_refunds_open on automatic_refunds (tenant_id, livemode, created_at desc, id desc) where state = 'open';
create index automatic_refunds_due on automatic_refunds (due_at) where due_at is not null;
create index automatic_refunds_failed on automatic_refunds (failed_at) where state = 'open' and failed_at is not null;

create table refunds (
    tenant_id      uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id             uuid        not null,
    status         text        not null check (status in ('creating', 'refused', 'pending', 'succeeded', 'failed', 'requires_action',
                                                          'canceled')),
    shown          boolean     not null default false, -- the gateway knows a part of it; only then it is listed
    amount         bigint      not null check (amount > 0),
    currency       text        not null,
    reason         text        not null check (reason in ('requested_by_customer', 'duplicate', 'fraudulent')),
    booking_id     uuid        not null,
    intent         text        collate "C",  -- pi_…, that the request named; null: it named the booking
    metadata       json,                     -- json, not jsonb: the order of keys and duplicates survive
    version        bigint      not null default 1,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    leased_until   timestamptz,              -- when another process may continue; null: nothing is in progress
    owed_id        uuid,                     -- of the row of automatic_refunds that it was created for
    credit_note_id uuid,                     -- that it was created for
    -- A refund by another method than gateway is money that the operator has handed back. It has no allocations.
    method         text        not null default 'gateway' check (method in ('gateway', 'cash', 'bank_transfer', 'other')),
    reference      text,                     -- the operator's own
    customer_id    uuid,                     -- of the booking, if there are no allocations
    primary key (tenant_id, livemode, id)
);
-- Refunds of which the gateway knows nothing are not listed.
create index refunds_created on refunds (tenant_id, livemode, created_at desc, id desc) where shown;
create index refunds_updated on refunds (tenant_id, livemode, updated_at, id) where shown;
create index refunds_status on refunds (tenant_id, livemode, status, created_at desc, id desc) where shown;
create index refunds_booking on refunds (tenant_id, livemode, booking_id, created_at desc, id desc) where shown;
create index refunds_customer on refunds (tenant_id, livemode, customer_id) where customer_id is not null;
create index refunds_leased on refunds (leased_until) where leased_until is not null;
create index refunds_refused on refunds (created_at) where status = 'refused' and not shown;
create unique index refunds_credit_note on refunds (tenant_id, livemode, credit_note_id) where credit_note_id is not null; -- one per credit note

-- The parts of a refund by payment intent. Each is one refund at the gateway, which has its id in its metadata.
create table refund_allocations (
    tenant_id        uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode         boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    refund_id        uuid        not null,
    position         integer     not null,
    id               uuid        not null,
    intent_id        uuid        not null,
    amount           bigint      not null check (amount > 0),
    status           text        not null check (status in ('creating', 'refused', 'pending', 'succeeded', 'failed', 'requires_action',
                                                            'canceled')),
    gateway_id       text        collate "C",        -- re_…; null until the gateway's response is known
    failure          json,                           -- domain.Failure
    attempt          integer     not null,           -- a part of the gateway's idempotency key: the same for the same effect
    attempted_at     timestamptz not null,           -- not later than the attempt's first call: the gateway keeps its key for 24 h
    applied          bigint      not null default 0, -- number of the last read of the gateway that was applied
    -- The version of the booking's account since which the part counts as returned, and the last version before it no longer counts,
    -- because it has failed.
    held_version     bigint      not null default 0,
    released_version bigint,
    primary key (tenant_id, livemode, refund_id, position),
    constraint refund_allocations_id unique (tenant_id, livemode, id),
    constraint refund_allocations_known check ((status in ('creating', 'refused')) = (gateway_id is null)),
    foreign key (tenant_id, livemode, refund_id) references refunds,
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index refund_allocations_intent on refund_allocations (tenant_id, livemode, intent_id, refund_id);
create index refund_allocations_open on refund_allocations (tenant_id, livemode, intent_id, id)
    where status in ('pending', 'requires_action');
create index refund_allocations_unended on refund_allocations (tenant_id, livemode, gateway_id)
    where status in ('pending', 'requires_action');

create table refund_metadata (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key       text collate "C" not null,
    value     text collate "C" not null,
    refund_id uuid             not null,
    primary key (tenant_id, livemode, key, value, refund_id),
    foreign key (tenant_id, livemode, refund_id) references refunds
);
create index refund_metadata_refund on refund_metadata (tenant_id, livemode, refund_id);

-- All movements of money at the gateway, in double entry: the entries of a movement add up to 0 in each currency. Append only.
create table ledger_entries (
    tenant_id      uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id     uuid             not null, -- the gateway account
    movement       text collate "C" not null, -- txn_…, the gateway's balance transaction
    ledger_account text             not null check (ledger_account in ('gateway_balance', 'gateway_fees', 'payments', 'conversion')),
    currency       text             not null, -- of ISO 4217
    amount         bigint           not null, -- in the smallest unit; what the account gains
    kind           text             not null check (kind in ('charge', 'charge_failed', 'refund', 'refund_failed', 'dispute', 'dispute_reversed')),
    object         text collate "C" not null, -- ch_…, re_… or dp_…, what has moved the money
    intent_id      uuid             not null,
    moved_at       timestamptz      not null, -- the gateway's time
    recorded_at    timestamptz      not null default clock_timestamp(),
    money_version  bigint           not null default 0, -- of the booking's account when the movement was recorded, before its own change
    primary key (tenant_id, livemode, account_id, movement, ledger_account, currency),
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index ledger_entries_intent on ledger_entries (tenant_id, livemode, intent_id, moved_at, movement);
-- The movements that were recorded on a day, for metering.
create index ledger_entries_recorded on ledger_entries (tenant_id, livemode, recorded_at) where ledger_account = 'payments';

-- What was received and returned for each booking, and for each invoice without one, by card and otherwise, in each currency.
create table money_accounts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        uuid    not null,           -- of the booking or the invoice
    currency  text    not null,           -- of ISO 4217
    kind      text    not null check (kind in ('booking', 'invoice')),
    received  bigint  not null default 0, -- in the smallest unit, whether or not it was returned
    returned  bigint  not null default 0,
    held      bigint  not null default 0, -- of refunds that have begun and are not in returned
    unbacked  bigint  not null default 0, -- what others returned, or banks took back, beyond what was left
    disputed  bigint  not null default 0, -- number of card payments that a payer disputes
    version   bigint  not null default 0,
    emitted   bigint  not null default 0, -- version of the last event
    primary key (tenant_id, livemode, id, currency),
    constraint money_accounts_sums check (received >= 0 and returned >= 0 and held >= 0 and unbacked >= 0 and disputed >= 0),
    constraint money_accounts_backed check (returned + held <= received + unbacked)
);

-- What has changed the sums of an account. Append only: an error is reversed by another entry.
create table money_entries (
    tenant_id      uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id     uuid             not null,
    currency       text             not null,
    version        bigint           not null, -- of the account after the entry
    kind           text             not null check (kind in ('received', 'received_reversed', 'returned', 'returned_reversed',
                                                             'held', 'released', 'disputed', 'dispute_ended')),
    method         text             not null check (method in ('card', 'cash', 'bank_transfer', 'other')),
    amount         bigint           not null, -- in the smallest unit; 0 of a dispute
    object         text collate "C" not null, -- pi_…, pay_…, cn_… or rf_…
    invoice_id     uuid,                      -- that the payment names
    credit_note_id uuid,                      -- that returned the money
    at             timestamptz      not null,
    primary key (tenant_id, livemode, account_id, currency, version),
    constraint money_entries_amount check (case when kind in ('disputed', 'dispute_ended') then amount = 0 else amount > 0 end),
    foreign key (tenant_id, livemode, account_id, currency) references money_accounts
);
-- A payment or a return outside the gateway is recorded once, and reversed once.
create unique index money_entries_object on money_entries (tenant_id, livemode, object, kind) where method <> 'card';

select protect(t) from unnest(array['gateway_accounts', 'gateway_webhook_secrets', 'gateway_events', 'gateway_reconciliations', 'bookings',
    'payment_intents', 'payment_intent_metadata', 'failed_charges', 'disputes', 'lost_bookings', 'booking_settlements', 'automatic_refunds',
    'refunds', 'refund_allocations', 'refund_metadata', 'ledger_entries', 'money_accounts', 'money_entries']::regclass[]) t;
revoke update, delete on ledger_entries, money_entries from "${APP_ROLE}";
revoke delete on disputes, failed_charges, money_accounts from "${APP_ROLE}";
select open_to_worker('gateway_accounts', 'select, update'), open_to_worker('gateway_webhook_secrets', 'select, update'), -- also for reseal
       open_to_worker('gateway_events', 'select, delete'), open_to_worker('gateway_reconciliations', 'select, insert'),
       open_to_worker('bookings', 'select, insert, update'), open_to_worker('lost_bookings', 'select, insert'),
       open_to_worker('booking_settlements', 'select, insert, update'), open_to_worker('automatic_refunds', 'select'),
       open_to_worker('payment_intents', 'select, delete'), open_to_worker('payment_intent_metadata', 'select, delete'),
       open_to_worker('refunds', 'select, delete'), open_to_worker('refund_allocations', 'select, delete'),
       open_to_worker('refund_metadata', 'select, delete');
grant insert on inbox to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- A gateway that sends an event has the id of the account and its signature, and no credential. The function runs as the owner, who sees
-- all rows. It is plpgsql, which keeps its plan.
-- +goose StatementBegin
create function gateway_account_home(wanted uuid) returns table (tenant_id uuid, livemode boolean)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
    return query select a.tenant_id, a.livemode from gateway_accounts a where a.id = wanted;
end $$;
-- +goose StatementEnd

-- The check runs as the owner, who sees the rows of all tenants, at the end of the transaction.
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
create constraint trigger ledger_balances after insert on ledger_entries deferrable initially deferred
    for each row execute function ledger_balances();

-- The ledger is append only, except for the erasure of a tenant.
-- +goose StatementBegin
create function ledger_is_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and is_erasing(tg_relid) then
        return null;
    end if;
    raise exception 'the ledger is append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger append_only before update or delete or truncate on ledger_entries
    for each statement execute function ledger_is_append_only();
create trigger append_only before update or delete or truncate on money_entries
    for each statement execute function ledger_is_append_only();

-- move_money is the only writer of the sums. It locks the account, and adds an entry. A decision of this platform
-- must be backed by what was received. A fact, such as a refund in the gateway's dashboard or a lost dispute, is recorded even if it is not.
-- +goose StatementBegin
create function move_money(
    of_tenant uuid, of_mode boolean, of_account uuid, of_kind text, of_currency text, entry text, entry_amount bigint, held_more bigint, fact boolean,
    entry_method text, entry_object text, entry_invoice uuid, entry_note uuid, entry_at timestamptz
) returns bigint language plpgsql as $$
declare
    received_more bigint := case entry when 'received' then entry_amount when 'received_reversed' then -entry_amount else 0 end;
    returned_more bigint := case entry when 'returned' then entry_amount when 'returned_reversed' then -entry_amount else 0 end;
    disputed_more bigint := case entry when 'disputed' then 1 when 'dispute_ended' then -1 else 0 end;
    moved bigint;
begin
    loop
        update money_accounts a set received = a.received + received_more, returned = a.returned + returned_more, held = a.held + held_more,
            disputed = a.disputed + disputed_more, version = a.version + 1,
            unbacked = case when fact
                then greatest(0, a.returned + returned_more + a.held + held_more - a.received - received_more) else a.unbacked end
        where a.tenant_id = of_tenant and a.livemode = of_mode and a.id = of_account and a.currency = of_currency
        returning a.version into moved;
        exit when found;
        insert into money_accounts (tenant_id, livemode, id, currency, kind) values (of_tenant, of_mode, of_account, of_currency, of_kind)
        on conflict do nothing;
    end loop;
    insert into money_entries (tenant_id, livemode, account_id, currency, version, kind, method, amount, object, invoice_id, credit_note_id, at)
    values (of_tenant, of_mode, of_account, of_currency, moved, entry, entry_method, entry_amount, entry_object, entry_invoice, entry_note, entry_at);
    return moved;
end $$;
-- +goose StatementEnd

-- move_card_money records how the money of an intent has changed. A refund in progress is held until the gateway's amount contains it. What
-- a lost dispute takes back is returned.
-- +goose StatementBegin
create function move_card_money(p payment_intents, was_received bigint, was_returned bigint, was_held bigint, was_disputed boolean, fact boolean)
returns void language plpgsql as $$
declare
    received_more bigint := p.received - was_received;
    returned_more bigint := p.refunded + p.lost - was_returned;
    held_more bigint := greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved) - p.refunded - was_held;
begin
    if received_more <> 0 then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when received_more > 0 then 'received' else 'received_reversed' end, abs(received_more), 0, true,
            'card', p.gateway_id, p.invoice_id, null, case when received_more > 0 then coalesce(p.succeeded_at, now()) else now() end);
    end if;
    if returned_more <> 0 or held_more <> 0 then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when returned_more > 0 then 'returned' when returned_more < 0 then 'returned_reversed' when held_more > 0 then 'held' else 'released' end,
            abs(case when returned_more <> 0 then returned_more else held_more end), held_more, fact,
            'card', p.gateway_id, p.invoice_id, null, now());
    end if;
    if p.disputed <> was_disputed then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when p.disputed then 'disputed' else 'dispute_ended' end, 0, 0, true, 'card', p.gateway_id, p.invoice_id, null, now());
    end if;
end $$;
-- +goose StatementEnd

-- The account follows each write of an intent. Only a refund that begins is a decision.
-- +goose StatementBegin
create function account_of_intent() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        perform move_card_money(new, 0, 0, 0, false, true);
    else
        perform move_card_money(new, old.received, old.refunded + old.lost,
            greatest(old.refunded, old.refunded_elsewhere + old.refund_reserved) - old.refunded, old.disputed,
            not (new.refund_reserved > old.refund_reserved and new.received = old.received and new.refunded = old.refunded)
                or coalesce(current_setting('app.reported', true), '') = 'true');
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger money_inserted after insert on payment_intents for each row
    when (new.received <> 0 or new.refunded <> 0 or new.refund_reserved <> 0 or new.refunded_elsewhere <> 0 or new.disputed)
    execute function account_of_intent();
create trigger money_moved after update of received, refunded, refund_reserved, refunded_elsewhere, lost, disputed on payment_intents for each row
    when ((old.received, old.refunded, old.refund_reserved, old.refunded_elsewhere, old.lost, old.disputed)
        is distinct from (new.received, new.refunded, new.refund_reserved, new.refunded_elsewhere, new.lost, new.disputed))
    execute function account_of_intent();

-- +goose ENVSUB ON
revoke all on function gateway_account_home(uuid), ledger_balances() from public;
grant execute on function gateway_account_home(uuid) to "${APP_ROLE}";

-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
drop function move_card_money;
drop table money_entries, money_accounts, ledger_entries, refund_metadata, refund_allocations, refunds, automatic_refunds, booking_settlements,
    lost_bookings, disputes, failed_charges, payment_intent_metadata, payment_intents, bookings, gateway_reconciliations, gateway_events,
    gateway_webhook_secrets, gateway_accounts;
drop function account_of_intent, move_money, ledger_is_append_only, ledger_balances, gateway_account_home;
