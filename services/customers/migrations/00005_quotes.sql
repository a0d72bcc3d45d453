-- +goose Up
create table quotes (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    number          text        not null,
    status          text        not null check (status in ('draft', 'sent', 'accepted', 'declined', 'expired', 'cancelled')),
    customer_id     uuid        not null,
    lead_id         uuid,
    service_id      uuid,
    unit_id         uuid,
    package_id      uuid,
    event_day       date,                          -- at the operator's
    event_at        timestamptz,                   -- the instant that was given for the day; null: the day's first
    event_start     text,                          -- HH:MM; null: a whole day
    event_end       text,                          -- HH:MM; null: as the package or service says
    timezone        text        not null,          -- the operator's when the quote was made
    line_items      json        not null,
    currency        text        not null,
    subtotal        bigint      not null,
    discount        bigint      not null,
    tax             bigint      not null,
    total           bigint      not null,
    deposit         bigint      not null check (deposit between 0 and total),
    expires_at      timestamptz,
    sent_at         timestamptz,
    accepted_at     timestamptz,
    declined_at     timestamptz,
    cancelled_at    timestamptz,
    booking_id      uuid,
    decline_reason  text,
    notes           text,
    terms           text,
    metadata        json,                          -- json, not jsonb: the order of keys and duplicates survive
    -- An accept under way, which no reader sees: its number, the time until which its process has it, when a completer takes
    -- it over, and the request that began it. accept_until is null when none is under way.
    accept_attempt  bigint      not null default 0,
    accept_until    timestamptz,
    accept_next     timestamptz,
    accept_request  text        not null default '',
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    primary key (tenant_id, livemode, id),
    constraint quotes_number unique (tenant_id, livemode, number),
    constraint quotes_accepting check (accept_until is null or status = 'sent'),
    constraint quotes_sent check (status <> 'sent' or (expires_at is not null and event_day is not null)),
    foreign key (tenant_id, livemode, customer_id) references customers
);
create index quotes_created on quotes (tenant_id, livemode, created_at desc, id desc);
create index quotes_updated on quotes (tenant_id, livemode, updated_at, id);
create index quotes_status on quotes (tenant_id, livemode, status, created_at desc, id desc);
create index quotes_customer on quotes (tenant_id, livemode, customer_id, created_at desc, id desc);
create index quotes_lead on quotes (tenant_id, livemode, lead_id, created_at desc, id desc) where lead_id is not null;
create index quotes_booking on quotes (tenant_id, livemode, booking_id, created_at desc, id desc) where booking_id is not null;

-- For the expiry of all tenants, and of one whose test clock has moved; and for accepts that a process has left behind.
create index quotes_due on quotes (expires_at, id) where status = 'sent' and accept_until is null;
create index quotes_due_of_tenant on quotes (tenant_id, livemode, expires_at, id) where status = 'sent' and accept_until is null;
create index quotes_left on quotes (accept_next, id) where accept_until is not null;

-- The pairs of quotes' metadata, written with the quote: an index that SQL cannot declare.
create table quote_metadata (
    tenant_id       uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key             text collate "C" not null,
    value           text collate "C" not null,
    quote_id        uuid             not null,
    primary key (tenant_id, livemode, key, value, quote_id),
    foreign key (tenant_id, livemode, quote_id) references quotes
);
create index quote_metadata_quote on quote_metadata (tenant_id, livemode, quote_id);

-- The next free number of quotes. Processes take them in blocks, so that commits do not queue here.
create table quote_counters (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next            bigint      not null,
    primary key (tenant_id, livemode)
);

-- What is known here of the tenant's test clock, which identity owns. The row stays when real time returns, so
-- that news that comes late is recognised as old.
create table test_clocks (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    frozen_at       timestamptz,                   -- null: real time
    version         bigint      not null,          -- the tenant's
    primary key (tenant_id, livemode)
);
create index test_clocks_frozen on test_clocks (tenant_id, livemode) where frozen_at is not null;

select protect(t) from unnest(array['quotes', 'quote_metadata', 'quote_counters', 'test_clocks']::regclass[]) t;

-- The worker finds what is due, and no more; it is written in its own tenant's transaction.
select open_to_worker('quotes', 'select (tenant_id, livemode, id, status, expires_at, accept_until, accept_next)');
select open_to_worker('test_clocks', 'select');

-- +goose Down
drop table test_clocks, quote_counters, quote_metadata, quotes;
