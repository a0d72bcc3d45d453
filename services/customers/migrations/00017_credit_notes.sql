-- +goose NO TRANSACTION
-- +goose ENVSUB ON
-- +goose Up
-- What credit notes have credited of an invoice, and what they have refunded of its payments, in all and by card. Of each, no more
-- than the total, however many requests run at once.
alter table invoices
    add column if not exists credited      bigint  not null default 0,
    add column if not exists returned      bigint  not null default 0,
    add column if not exists returned_card bigint  not null default 0,
    add column if not exists credit_notes  integer not null default 0,
    add column if not exists credited_parts json, -- domain.Parts of credited
    add column if not exists parts         json;  -- domain.Parts of a balance whose lines the platform wrote
alter table invoices
    drop constraint if exists invoices_credited,
    add constraint invoices_credited check (credited between 0 and total) not valid,
    drop constraint if exists invoices_returned,
    add constraint invoices_returned check (returned_card between 0 and returned and returned <= credited) not valid,
    drop constraint if exists invoices_status_check,
    add constraint invoices_status_check
        check (status in ('draft', 'open', 'partially_paid', 'paid', 'uncollectible', 'void', 'credited')) not valid;
alter table invoices validate constraint invoices_credited, validate constraint invoices_returned, validate constraint invoices_status_check;

create table if not exists credit_notes (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    seq             bigint      not null, -- the counter in the number
    number          text        not null,
    status          text        not null check (status in ('issued', 'refund_pending', 'refund_failed')),
    invoice_id      uuid        not null,
    customer_id     uuid        not null,
    booking_id      uuid,
    reason          text,
    lines           json        not null,
    pricing         json        not null,
    currency        text        not null,
    subtotal        bigint      not null,
    discount        bigint      not null,
    tax             bigint      not null,
    total           bigint      not null check (total > 0),
    refund          text        not null check (refund in ('none', 'gateway', 'manual')),
    refund_amount   bigint      not null check (refund_amount >= 0), -- more than total if an earlier one refunded nothing
    returned        bigint      not null check (returned between 0 and refund_amount), -- what is refunded, or may be
    refund_parts    json        not null, -- domain.NotePart
    refund_id       text,                 -- rf_…, once the gateway knows it
    refund_version  bigint      not null default 0,
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    -- The request to payments, while its outcome is unknown.
    call_attempt    integer     not null default 0,
    call_since      timestamptz,
    call_until      timestamptz,
    call_next       timestamptz,
    call_request    text        not null default '',
    call_actor      text        not null default '',
    primary key (tenant_id, livemode, id),
    constraint credit_notes_seq unique (tenant_id, livemode, seq),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);
create index if not exists credit_notes_created on credit_notes (tenant_id, livemode, created_at desc, id desc);
create index if not exists credit_notes_updated on credit_notes (tenant_id, livemode, updated_at, id);
create index if not exists credit_notes_invoice on credit_notes (tenant_id, livemode, invoice_id, created_at desc, id desc);
create index if not exists credit_notes_customer on credit_notes (tenant_id, livemode, customer_id, created_at desc, id desc);
create index if not exists credit_notes_booking on credit_notes (tenant_id, livemode, booking_id, created_at desc, id desc) where booking_id is not null;
create index if not exists credit_notes_calls on credit_notes (call_next, id) where call_until is not null;

-- What a credit note refunds of a charge. It is taken from the parts of this charge on the invoice of the credit note.
create table if not exists credit_note_refunds (
    tenant_id       uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    charge_id       text collate "C" not null,
    credit_note_id  uuid             not null,
    invoice_id      uuid             not null,
    amount          bigint           not null check (amount >= 0),
    known           boolean          not null, -- the gateway knows the refund
    primary key (tenant_id, livemode, charge_id, credit_note_id),
    foreign key (tenant_id, livemode, credit_note_id) references credit_notes
);
create index if not exists credit_note_refunds_invoice on credit_note_refunds (tenant_id, livemode, invoice_id);

-- The next number of a tenant's credit notes in a mode, as in invoice_counters.
create table if not exists credit_note_counters (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next            bigint      not null,
    primary key (tenant_id, livemode)
);

select protect(t) from unnest(array['credit_notes', 'credit_note_refunds', 'credit_note_counters']::regclass[]) t;
-- The worker finds the requests that no process is working on, and no more.
drop policy if exists worker on credit_notes;
select open_to_worker('credit_notes', 'select (tenant_id, livemode, id, call_since, call_until, call_next)');

-- What credit notes have refunded of a charge. It reduces the parts on invoices, and not what no invoice took. It counts once the
-- charge shows at least as much.
alter table charges add column if not exists directed bigint not null default 0;
drop index concurrently if exists charges_unallocated_directed;
create index concurrently charges_unallocated_directed on charges (tenant_id, livemode, booking_id, id)
    where unapplied > case when directed > refunded then refunded else refunded - directed end;

-- +goose Down
drop index concurrently if exists charges_unallocated_directed;
alter table charges drop column if exists directed;
drop table if exists credit_note_counters, credit_note_refunds, credit_notes;
alter table invoices
    drop constraint if exists invoices_status_check,
    add constraint invoices_status_check check (status in ('draft', 'open', 'partially_paid', 'paid', 'uncollectible', 'void')) not valid;
alter table invoices
    drop column if exists parts, drop column if exists credited_parts, drop column if exists credit_notes, drop column if exists returned_card, drop column if exists returned, drop column if exists credited;
