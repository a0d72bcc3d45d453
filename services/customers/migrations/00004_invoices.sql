-- +goose Up
-- What is known here of the bookings service's rows; kept by its events, and by one look-up of a booking that they have
-- not told of yet. It holds nothing personal.
create table bookings (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    customer_id     uuid,
    status          text        not null,
    currency        text        not null,
    total           bigint      not null,
    version         bigint      not null,
    primary key (tenant_id, livemode, id)
);

create table invoices (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    seq             bigint,               -- the counter in the number; null: a draft
    number          text,
    status          text        not null check (status in ('draft', 'open', 'partially_paid', 'paid', 'uncollectible', 'void')),
    kind            text        not null check (kind in ('deposit', 'balance', 'full')),
    customer_id     uuid        not null,
    lead_id         uuid,
    quote_id        uuid,
    booking_id      uuid,
    lines           json        not null, -- domain.Line
    currency        text        not null,
    subtotal        bigint      not null,
    discount        bigint      not null,
    tax             bigint      not null,
    total           bigint      not null check (total >= 0),
    paid            bigint      not null default 0, -- the sum of the payments that are not reversed
    due_at          timestamptz,
    billing_address text,
    billing         json,                 -- domain.Billing, from the opening on; erasure keeps it
    notes           text,
    metadata        json,                 -- json, not jsonb: the order of keys and duplicates survive
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    opened_at       timestamptz,
    paid_at         timestamptz,
    voided_at       timestamptz,
    primary key (tenant_id, livemode, id),
    constraint invoices_seq unique (tenant_id, livemode, seq),
    constraint invoices_numbered check ((seq is null) = (number is null) and (seq is null) = (status = 'draft')),
    constraint invoices_paid check (paid between 0 and total),
    foreign key (tenant_id, livemode, customer_id) references customers
);
-- Under row-level security only leakproof comparisons reach an index; = on uuid and text and < on timestamptz are.
create index invoices_created on invoices (tenant_id, livemode, created_at desc, id desc);
create index invoices_updated on invoices (tenant_id, livemode, updated_at, id);
create index invoices_status on invoices (tenant_id, livemode, status, created_at desc, id desc);
create index invoices_customer on invoices (tenant_id, livemode, customer_id, created_at desc, id desc);
create index invoices_booking on invoices (tenant_id, livemode, booking_id, created_at desc, id desc) where booking_id is not null;
create index invoices_quote on invoices (tenant_id, livemode, quote_id, created_at, id) where quote_id is not null;
create index invoices_due on invoices (tenant_id, livemode, due_at);
create index invoices_overdue on invoices (tenant_id, livemode, due_at) where status in ('open', 'partially_paid');

create table invoice_payments (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    invoice_id      uuid        not null,
    position        integer     not null check (position between 1 and 100),
    id              uuid        not null,
    amount          bigint      not null check (amount > 0),
    method          text        not null,
    source          text        not null check (source in ('manual', 'gateway')),
    paid_at         timestamptz not null,
    reference       text,
    reversed_at     timestamptz,
    primary key (tenant_id, livemode, invoice_id, position),
    constraint invoice_payments_id unique (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);

-- The pairs of invoices' metadata, written with the invoice: an index that SQL cannot declare.
create table invoice_metadata (
    tenant_id       uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key             text collate "C" not null,
    value           text collate "C" not null,
    invoice_id      uuid             not null,
    primary key (tenant_id, livemode, key, value, invoice_id),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);
create index invoice_metadata_invoice on invoice_metadata (tenant_id, livemode, invoice_id);

-- The next number of a tenant's invoices in a mode. Its row is locked from the opening of an invoice until the end of the
-- transaction, so that numbers have no gap.
create table invoice_counters (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next            bigint      not null,
    primary key (tenant_id, livemode)
);

select protect(t) from unnest(array['bookings', 'invoices', 'invoice_payments', 'invoice_metadata', 'invoice_counters']::regclass[]) t;

-- +goose Down
drop table invoice_counters, invoice_metadata, invoice_payments, invoices, bookings;
