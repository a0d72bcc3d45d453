-- +goose Up
create table customers (
    tenant_id   uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id          uuid        not null,
    first_name  text        not null,
    last_name   text,
    email       text        not null,
    email_lower text        not null, -- folded by the service, which folds the filter the same way
    phone       text,
    company     text,
    metadata    json,                 -- json, not jsonb: the order of keys and duplicates survive
    version     bigint      not null default 1,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    erased_at   timestamptz,          -- set: a tombstone without personal data, which nothing reads
    primary key (tenant_id, livemode, id)
);
create index customers_created on customers (tenant_id, livemode, created_at desc, id desc) where erased_at is null;
create index customers_updated on customers (tenant_id, livemode, updated_at, id) where erased_at is null;
create index customers_email on customers (tenant_id, livemode, email_lower, created_at desc, id desc) where erased_at is null;
create index customers_phone on customers (tenant_id, livemode, phone, created_at desc, id desc) where erased_at is null;

-- The two tables below are indexes that SQL cannot declare, written with the customer's row. Under row-level
-- security only leakproof comparisons reach an index: = on pairs, >= and < on words in byte order.
create table customer_words (
    tenant_id   uuid               not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean            not null default nullif(current_setting('app.livemode', true), '')::boolean,
    word        text collate "C"   not null,
    customer_id uuid               not null,
    primary key (tenant_id, livemode, word, customer_id)
);
create index customer_words_customer on customer_words (tenant_id, livemode, customer_id);

create table customer_metadata (
    tenant_id   uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key         text collate "C" not null,
    value       text collate "C" not null,
    customer_id uuid             not null,
    primary key (tenant_id, livemode, key, value, customer_id)
);
create index customer_metadata_customer on customer_metadata (tenant_id, livemode, customer_id);

select protect(t) from unnest(array['customers', 'customer_words', 'customer_metadata']::regclass[]) t;

-- +goose Down
drop table customer_metadata, customer_words, customers;
