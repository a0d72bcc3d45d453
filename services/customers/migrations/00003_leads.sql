-- +goose Up
create table leads (
    tenant_id                uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode                 boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                       uuid        not null,
    status                   text        not null check (status in ('new', 'contacted', 'qualified', 'quoted', 'converted', 'lost')),
    source                   text,
    first_name               text        not null,
    last_name                text,
    email                    text,
    email_lower              text, -- folded by the service
    phone                    text,
    company                  text,
    event_type               text,
    event_day                date,        -- in the operator's zone
    event_at                 timestamptz, -- the instant that was given for the day, or the day's first
    guest_count              integer     check (guest_count >= 0),
    budget                   bigint      check (budget >= 0),
    budget_currency          text,
    message                  text,
    service_id               uuid,
    unit_id                  uuid,
    package_id               uuid,
    customer_id              uuid,
    converted_booking_id     uuid,
    lost_reason              text,
    metadata                 json,        -- json, not jsonb: the order of keys and duplicates survive
    converted_at             timestamptz,
    version                  bigint      not null default 1,
    created_at               timestamptz not null,
    updated_at               timestamptz not null,
    -- A conversion that waits for bookings, which no reader sees. The attempt only rises, so that no earlier one is taken for it.
    converting_until         timestamptz, -- set: under way; another process may go on with it afterwards
    converting_attempt       integer     not null default 0,
    converting_tries         integer     not null default 0, -- attempts at this conversion
    converting_customer_id   uuid,
    converting_new_customer  boolean     not null default false,
    converting_body          json,        -- of POST /bookings
    check ((converting_until is null) = (converting_customer_id is null) and (converting_until is null) = (converting_body is null)),
    check ((status = 'converted') = (converted_at is not null)),
    check ((budget is null) = (budget_currency is null)),
    check ((event_day is null) = (event_at is null)),
    primary key (tenant_id, livemode, id)
);
create index leads_created on leads (tenant_id, livemode, created_at desc, id desc);
create index leads_updated on leads (tenant_id, livemode, updated_at, id);
create index leads_status on leads (tenant_id, livemode, status, created_at desc, id desc);
create index leads_source on leads (tenant_id, livemode, source, created_at desc, id desc);
create index leads_customer on leads (tenant_id, livemode, customer_id, created_at desc, id desc);
create index leads_converting on leads (converting_until, id) where converting_until is not null;
create index leads_converting_email on leads (tenant_id, livemode, email_lower)
    where converting_until is not null and converting_new_customer;
create index leads_converting_customer on leads (tenant_id, livemode, converting_customer_id) where converting_until is not null;

create table lead_words (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    word      text collate "C" not null,
    lead_id   uuid             not null,
    primary key (tenant_id, livemode, word, lead_id)
);
create index lead_words_lead on lead_words (tenant_id, livemode, lead_id);

create table lead_metadata (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key       text collate "C" not null,
    value     text collate "C" not null,
    lead_id   uuid             not null,
    primary key (tenant_id, livemode, key, value, lead_id)
);
create index lead_metadata_lead on lead_metadata (tenant_id, livemode, lead_id);

select protect(t) from unnest(array['leads', 'lead_words', 'lead_metadata']::regclass[]) t;

-- The worker finds the conversions that nobody is working on; each is finished in its own tenant's transaction.
select open_to_worker('leads', 'select (tenant_id, livemode, id, converting_until, converting_tries)');

-- +goose Down
drop table lead_metadata, lead_words, leads;
