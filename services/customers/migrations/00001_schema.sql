-- +goose ENVSUB ON
-- +goose Up
create table customers (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    first_name      text        not null,
    last_name       text,
    email           text        not null,
    email_lower     text        not null, -- folded by the service, which folds the filter the same way
    phone           text,
    company         text,
    metadata        json,                 -- json, not jsonb: the order of keys and duplicates survive
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    erased_at       timestamptz,          -- set: a tombstone without personal data, which nothing reads
    tax_id          text,
    billing_address json,
    country         text,
    locale          text,
    primary key (tenant_id, livemode, id)
);
create index customers_created on customers (tenant_id, livemode, created_at desc, id desc) where erased_at is null;
create index customers_synced on customers (tenant_id, livemode, updated_at, id); -- sort=updated_at also lists erased customers
create index customers_email on customers (tenant_id, livemode, email_lower, created_at desc, id desc) where erased_at is null;
create index customers_phone on customers (tenant_id, livemode, phone, created_at desc, id desc) where erased_at is null;

-- The two tables below are indexes that SQL cannot declare, written with the customer's row. Under row-level
-- security only leakproof comparisons reach an index: = on pairs, >= and < on words in byte order.
create table customer_words (
    tenant_id   uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    word        text collate "C" not null,
    customer_id uuid             not null,
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

-- What is known here of the catalogue of bookings, kept by its events.
create table catalogue_items (
    tenant_id       uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              text collate "C" not null, -- srv_…, un_… or pkg_…
    version         bigint           not null,
    service_id      uuid,                      -- of a package
    default_taxes   json,                      -- of a service: money.Tax; null: those of the operator
    primary key (tenant_id, livemode, id)
);

-- What is known here of the bookings service's rows; kept by its events, and by one look-up of a booking that they have
-- not told of yet. It holds nothing personal. The worker writes it: a batch of events is of many tenants.
create table bookings (
    tenant_id   uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id          uuid    not null,
    customer_id uuid,
    status      text    not null,
    currency    text    not null,
    total       bigint  not null,
    version     bigint  not null,
    service_id  uuid,             -- by which the taxes of its invoices are looked up
    primary key (tenant_id, livemode, id)
);

-- What is known here of the tenant's test clock, which identity owns. The row stays when real time returns, so
-- that news that comes late is recognized as old.
create table test_clocks (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    frozen_at timestamptz,      -- null: real time
    version   bigint  not null, -- the tenant's
    primary key (tenant_id, livemode)
);
create index test_clocks_frozen on test_clocks (tenant_id, livemode) where frozen_at is not null;

create table leads (
    tenant_id               uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode                boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                      uuid        not null,
    status                  text        not null check (status in ('new', 'contacted', 'qualified', 'quoted', 'converted', 'lost')),
    source                  text,
    first_name              text        not null,
    last_name               text,
    email                   text,
    email_lower             text,        -- folded by the service
    phone                   text,
    company                 text,
    event_type              text,
    event_day               date,        -- in the operator's zone
    event_at                timestamptz, -- the instant that was given for the day, or the day's first
    guest_count             integer     check (guest_count >= 0),
    budget                  bigint      check (budget >= 0),
    budget_currency         text,
    message                 text,
    service_id              uuid,
    unit_id                 uuid,
    package_id              uuid,
    customer_id             uuid,
    converted_booking_id    uuid,
    lost_reason             text,
    metadata                json,        -- json, not jsonb: the order of keys and duplicates survive
    converted_at            timestamptz,
    version                 bigint      not null default 1,
    created_at              timestamptz not null,
    updated_at              timestamptz not null,
    -- A conversion that waits for bookings, which no reader sees. The attempt only rises, so that no earlier one is taken for it.
    converting_until        timestamptz, -- set: in progress; another process may continue it afterwards
    converting_attempt      integer     not null default 0,
    converting_tries        integer     not null default 0, -- attempts at this conversion
    converting_customer_id  uuid,
    converting_new_customer boolean     not null default false,
    converting_body         json,        -- of POST /bookings
    converting_actor        text        not null default '', -- the credential that asked for it, which the events name
    converting_since        timestamptz, -- start of the first attempt
    -- What a lead without a customer says of a person is exported and erased with the customer of its newest quote. No reader sees it.
    quoted_customer_id      uuid,
    person_id               uuid        generated always as (coalesce(customer_id, quoted_customer_id)) stored,
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
create index leads_person on leads (tenant_id, livemode, person_id, created_at desc, id desc);
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

create table quotes (
    tenant_id      uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id             uuid        not null,
    number         text        not null,
    status         text        not null check (status in ('draft', 'sent', 'accepted', 'declined', 'expired', 'cancelled')),
    customer_id    uuid        not null,
    lead_id        uuid,
    service_id     uuid,
    unit_id        uuid,
    package_id     uuid,
    event_day      date,                 -- at the operator's
    event_at       timestamptz,          -- the instant that was given for the day; null: the day's first
    event_start    text,                 -- HH:MM; null: a whole day
    event_end      text,                 -- HH:MM; null: as the package or service says
    timezone       text        not null, -- the operator's when the quote was created
    line_items     json        not null,
    currency       text        not null,
    subtotal       bigint      not null,
    discount       bigint      not null,
    tax            bigint      not null,
    total          bigint      not null,
    deposit        bigint      not null check (deposit between 0 and total),
    expires_at     timestamptz,
    sent_at        timestamptz,
    accepted_at    timestamptz,
    declined_at    timestamptz,
    cancelled_at   timestamptz,
    booking_id     uuid,
    decline_reason text,
    notes          text,
    terms          text,
    metadata       json,                 -- json, not jsonb: the order of keys and duplicates survive
    -- An accept in progress, which no reader sees: its number, the time until which its process has it, when a completer takes
    -- it over, and the request that began it. accept_until is null if there is none.
    accept_attempt bigint      not null default 0,
    accept_until   timestamptz,
    accept_next    timestamptz,
    accept_request text        not null default '',
    version        bigint      not null default 1,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    accept_actor   text        not null default '', -- the credential that asked for it, which the events name
    accept_since   timestamptz,          -- start of the first attempt
    pricing        json,                 -- the amounts, discounts and taxes of the lines, as store/pricing.go describes them
    guest_count    integer     check (guest_count > 0), -- null: counts as one guest, and is not sent to bookings
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
-- For the expiry of all tenants, and of one whose test clock has moved; and for accepts whose process has ended.
create index quotes_due on quotes (expires_at, id) where status = 'sent' and accept_until is null;
create index quotes_due_of_tenant on quotes (tenant_id, livemode, expires_at, id) where status = 'sent' and accept_until is null;
create index quotes_left on quotes (accept_next, id) where accept_until is not null;

-- The pairs of quotes' metadata, written with the quote: an index that SQL cannot declare.
create table quote_metadata (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key       text collate "C" not null,
    value     text collate "C" not null,
    quote_id  uuid             not null,
    primary key (tenant_id, livemode, key, value, quote_id),
    foreign key (tenant_id, livemode, quote_id) references quotes
);
create index quote_metadata_quote on quote_metadata (tenant_id, livemode, quote_id);

-- The next free number of quotes. Processes take them in blocks, so that commits do not queue here.
create table quote_counters (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next      bigint  not null,
    primary key (tenant_id, livemode)
);

create table invoices (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    seq             bigint,               -- the counter in the number; null: a draft
    number          text,
    status          text        not null check (status in ('draft', 'open', 'partially_paid', 'paid', 'uncollectible', 'void', 'credited')),
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
    pricing         json,                 -- as in quotes
    -- What credit notes have credited of the invoice, and what they have refunded of its payments, in all and by card. Of each, no more
    -- than the total, however many requests run at once.
    credited        bigint      not null default 0,
    returned        bigint      not null default 0,
    returned_card   bigint      not null default 0,
    credit_notes    integer     not null default 0,
    credited_parts  json,                 -- domain.Parts of credited
    parts           json,                 -- domain.Parts of a balance whose lines the platform wrote
    -- The days of the booking when the invoice was opened. Null: a draft, or an invoice without a booking.
    served_from     date,
    served_to       date,
    primary key (tenant_id, livemode, id),
    constraint invoices_seq unique (tenant_id, livemode, seq),
    constraint invoices_numbered check ((seq is null) = (number is null) and (seq is null) = (status = 'draft')),
    constraint invoices_paid check (paid between 0 and total),
    constraint invoices_credited check (credited between 0 and total),
    constraint invoices_returned check (returned_card between 0 and returned and returned <= credited),
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
    tenant_id   uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    invoice_id  uuid             not null,
    position    integer          not null check (position between 1 and 200), -- payments by card may follow the 100 that a client can record
    id          uuid             not null,
    amount      bigint           not null check (amount > 0),
    method      text             not null,
    source      text             not null check (source in ('manual', 'gateway')),
    paid_at     timestamptz      not null,
    reference   text,
    reversed_at timestamptz,
    charge_id   text collate "C", -- the charge that the payment is a part of,
    charge_part integer          not null default 0, -- and its place among the parts, from 1
    refunded    bigint           not null default 0 check (refunded between 0 and amount),
    disputed    boolean          not null default false,
    primary key (tenant_id, livemode, invoice_id, position),
    constraint invoice_payments_id unique (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);

-- The pairs of invoices' metadata, written with the invoice: an index that SQL cannot declare.
create table invoice_metadata (
    tenant_id  uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key        text collate "C" not null,
    value      text collate "C" not null,
    invoice_id uuid             not null,
    primary key (tenant_id, livemode, key, value, invoice_id),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);
create index invoice_metadata_invoice on invoice_metadata (tenant_id, livemode, invoice_id);

-- The next number of a tenant's invoices in a mode. Its row is locked from the opening of an invoice until the end of the
-- transaction, so that numbers have no gap.
create table invoice_counters (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next      bigint  not null,
    primary key (tenant_id, livemode)
);

create table credit_notes (
    tenant_id      uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id             uuid        not null,
    seq            bigint      not null, -- the counter in the number
    number         text        not null,
    status         text        not null check (status in ('issued', 'refund_pending', 'refund_failed')),
    invoice_id     uuid        not null,
    customer_id    uuid        not null,
    booking_id     uuid,
    reason         text,
    lines          json        not null,
    pricing        json        not null,
    currency       text        not null,
    subtotal       bigint      not null,
    discount       bigint      not null,
    tax            bigint      not null,
    total          bigint      not null check (total > 0),
    refund         text        not null check (refund in ('none', 'gateway', 'manual')),
    refund_amount  bigint      not null check (refund_amount >= 0), -- more than total if an earlier one refunded nothing
    returned       bigint      not null check (returned between 0 and refund_amount), -- what is refunded, or may be
    refund_parts   json        not null, -- domain.NotePart
    refund_id      text,                 -- rf_…, once the gateway knows it
    refund_version bigint      not null default 0,
    version        bigint      not null default 1,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    -- The request to payments, while its outcome is unknown.
    call_attempt   integer     not null default 0,
    call_since     timestamptz,
    call_until     timestamptz,
    call_next      timestamptz,
    call_request   text        not null default '',
    call_actor     text        not null default '',
    primary key (tenant_id, livemode, id),
    constraint credit_notes_seq unique (tenant_id, livemode, seq),
    foreign key (tenant_id, livemode, invoice_id) references invoices
);
create index credit_notes_created on credit_notes (tenant_id, livemode, created_at desc, id desc);
create index credit_notes_updated on credit_notes (tenant_id, livemode, updated_at, id);
create index credit_notes_invoice on credit_notes (tenant_id, livemode, invoice_id, created_at desc, id desc);
create index credit_notes_customer on credit_notes (tenant_id, livemode, customer_id, created_at desc, id desc);
create index credit_notes_booking on credit_notes (tenant_id, livemode, booking_id, created_at desc, id desc) where booking_id is not null;
create index credit_notes_calls on credit_notes (call_next, id) where call_until is not null;

-- What a credit note refunds of a charge. It is taken from the parts of this charge on the invoice of the credit note.
create table credit_note_refunds (
    tenant_id      uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    charge_id      text collate "C" not null,
    credit_note_id uuid             not null,
    invoice_id     uuid             not null,
    amount         bigint           not null check (amount >= 0),
    primary key (tenant_id, livemode, charge_id, credit_note_id),
    foreign key (tenant_id, livemode, credit_note_id) references credit_notes
);
create index credit_note_refunds_invoice on credit_note_refunds (tenant_id, livemode, invoice_id);

-- The next number of a tenant's credit notes in a mode, as in invoice_counters.
create table credit_note_counters (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next      bigint  not null,
    primary key (tenant_id, livemode)
);

-- The accounts of payments as charges and invoices show them: the money of a booking, or of an invoice without one.
create table money_accounts (
    tenant_id     uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode      boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id            uuid    not null,           -- of the booking or the invoice
    currency      text    not null,
    returned      bigint  not null,           -- in the smallest unit
    returned_free bigint  not null default 0, -- what was handed back outside the gateway of money on no invoice
    version       bigint  not null,           -- the last that was applied
    primary key (tenant_id, livemode, id, currency)
);

-- A charge is any payment of an account, which booking_id identifies. The newest version of the account decides. What of a charge lies on
-- no invoice is put on one that awaits money later, so its currency and its age are kept.
create table charges (
    tenant_id    uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode     boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id           text collate "C" not null, -- the gateway's, pi_…, or the uuid of a payment that a client recorded
    booking_id   uuid             not null,
    amount       bigint           not null, -- 0 of a client's payment until payments has recorded it, and after its reversal
    unapplied    bigint           not null, -- what no invoice took; it stays on the booking
    refunded     bigint           not null default 0 check (refunded >= 0),
    disputed     boolean          not null default false,
    version      bigint           not null default 0, -- of the account
    currency     text,                      -- null: the booking's
    created_at   timestamptz      default clock_timestamp(),
    directed     bigint           not null default 0, -- what credit notes have refunded: of the parts on invoices, not of unapplied
    method       text             not null default 'card',
    reference    text,
    paid_at      timestamptz,
    invoice_id   uuid,                      -- that the payment names
    -- The request to payments, while its outcome is unknown.
    call_amount  bigint,
    call_attempt integer          not null default 0,
    call_since   timestamptz,
    call_until   timestamptz,
    call_next    timestamptz,
    call_request text             not null default '',
    call_actor   text             not null default '',
    primary key (tenant_id, livemode, id)
);
create index charges_booking on charges (tenant_id, livemode, booking_id);
create index charges_calls on charges (tenant_id, livemode, booking_id) where call_until is not null;
create index charges_unallocated_directed on charges (tenant_id, livemode, booking_id, id)
    where unapplied > case when directed > refunded then refunded else refunded - directed end;

select protect(t) from unnest(array['customers', 'customer_words', 'customer_metadata', 'catalogue_items', 'bookings', 'test_clocks', 'leads',
    'lead_words', 'lead_metadata', 'quotes', 'quote_metadata', 'quote_counters', 'invoices', 'invoice_payments', 'invoice_metadata',
    'invoice_counters', 'credit_notes', 'credit_note_refunds', 'credit_note_counters', 'money_accounts', 'charges']::regclass[]) t;
-- The worker finds what is due, and no more. Each row is written in its own tenant's transaction.
select open_to_worker('leads', 'select (tenant_id, livemode, id, converting_until, converting_tries, converting_since)'),
       open_to_worker('quotes', 'select (tenant_id, livemode, id, status, expires_at, accept_until, accept_next, accept_since)'),
       open_to_worker('credit_notes', 'select (tenant_id, livemode, id, call_since, call_until, call_next)'),
       open_to_worker('charges', 'select'), open_to_worker('test_clocks', 'select'), open_to_worker('bookings', 'select, insert, update');
grant insert on inbox to "${WORKER_ROLE}";

-- +goose ENVSUB OFF
-- The erasure of a customer clears these columns too.
-- +goose StatementBegin
create function clear_erased_customer() returns trigger language plpgsql as $$
begin
    new.tax_id := null;
    new.billing_address := null;
    new.country := null;
    new.locale := null;
    return new;
end $$;
-- +goose StatementEnd
create trigger clear_erased_customer before update of erased_at on customers
    for each row when (new.erased_at is not null) execute function clear_erased_customer();

-- +goose ENVSUB ON
-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
drop table charges, money_accounts, credit_note_counters, credit_note_refunds, credit_notes, invoice_counters, invoice_metadata, invoice_payments,
    invoices, quote_counters, quote_metadata, quotes, lead_metadata, lead_words, leads, test_clocks, bookings, catalogue_items,
    customer_metadata, customer_words, customers;
drop function clear_erased_customer;
