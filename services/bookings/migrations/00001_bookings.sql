-- +goose Up
create table services (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    description           text,
    duration_minutes      integer     check (duration_minutes > 0),
    slot_step_minutes     integer     check (slot_step_minutes >= 5),
    buffer_before_minutes integer     not null default 0 check (buffer_before_minutes between 0 and 1440),
    buffer_after_minutes  integer     not null default 0 check (buffer_after_minutes between 0 and 1440),
    active                boolean     not null default true,
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id)
);

create table units (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    description           text,
    status                text        not null default 'active' check (status in ('active', 'maintenance', 'retired')),
    capacity              integer     check (capacity >= 0),
    opening_hours         json,
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id)
);

create table unit_services (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    unit_id               uuid        not null,
    service_id            uuid        not null,
    primary key (tenant_id, livemode, unit_id, service_id),
    foreign key (tenant_id, livemode, unit_id) references units,
    foreign key (tenant_id, livemode, service_id) references services
);
create index unit_services_service on unit_services (tenant_id, livemode, service_id, unit_id);

create table packages (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    service_id            uuid        not null,
    name                  text        not null,
    description           text,
    currency              text        not null,
    base_price            bigint      not null check (base_price >= 0),
    deposit_type          text        not null default 'none' check (deposit_type in ('none', 'flat', 'percentage')),
    deposit_value         bigint      not null default 0 check (deposit_value >= 0),
    duration_minutes      integer     check (duration_minutes > 0),
    visible               boolean     not null default true,
    active                boolean     not null default true,
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, service_id) references services
);
create index packages_service on packages (tenant_id, livemode, service_id, created_at desc, id desc);

create table package_units (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    package_id            uuid        not null,
    unit_id               uuid        not null,
    primary key (tenant_id, livemode, package_id, unit_id),
    foreign key (tenant_id, livemode, package_id) references packages,
    foreign key (tenant_id, livemode, unit_id) references units
);

-- Empty service_ids and package_ids mean that the rule applies to all.
create table holiday_rules (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    date_from             date        not null,
    date_to               date        not null,
    recurrence            text        not null default 'none' check (recurrence in ('none', 'yearly')),
    multiplier_bps        bigint      not null check (multiplier_bps >= 0),
    service_ids           uuid[]      not null default '{}',
    package_ids           uuid[]      not null default '{}',
    priority              integer     not null default 0,
    stackable             boolean     not null default false,
    active                boolean     not null default true,
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id)
);

-- What is known here of the customers service's rows; kept by its events.
create table customers (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    version               bigint      not null,
    erased                boolean     not null default false,
    primary key (tenant_id, livemode, id)
);

create table bookings (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    number                text        not null,
    status                text        not null check (status in ('pending', 'confirmed', 'expired', 'cancelled', 'completed', 'no_show')),
    customer_id           uuid,
    lead_id               uuid,
    quote_id              uuid,
    service_id            uuid,
    unit_id               uuid,
    package_id            uuid,
    package_snapshot      json,
    event_type            text,
    event_day             date        not null,       -- at the operator's
    event_start           text,                       -- HH:MM; null: a whole day
    event_end             text,                       -- HH:MM; null: follows from a duration
    starts_at             timestamptz,
    ends_at               timestamptz,
    timezone              text        not null,
    guest_count           integer,
    notes                 text,
    currency              text        not null,
    total                 bigint      not null,
    deposit               bigint      not null,
    paid                  bigint      not null,
    refunded              bigint      not null,
    payment_status        text        not null,
    hold_expires_at       timestamptz,
    cancel_reason         text,
    metadata              json,                       -- json, not jsonb: the order of keys and duplicates survive
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    confirmed_at          timestamptz,
    cancelled_at          timestamptz,
    completed_at          timestamptz,
    primary key (tenant_id, livemode, id),
    constraint bookings_number unique (tenant_id, livemode, number),
    constraint bookings_span check (starts_at < ends_at),
    foreign key (tenant_id, livemode, customer_id) references customers,
    foreign key (tenant_id, livemode, service_id) references services,
    foreign key (tenant_id, livemode, unit_id) references units,
    foreign key (tenant_id, livemode, package_id) references packages
);
-- Under row-level security only leakproof comparisons reach an index; = on uuid and text and < on date are.
create index bookings_created on bookings (tenant_id, livemode, created_at desc, id desc);
create index bookings_updated on bookings (tenant_id, livemode, updated_at, id);
create index bookings_status on bookings (tenant_id, livemode, status, created_at desc, id desc);
create index bookings_payment on bookings (tenant_id, livemode, payment_status, created_at desc, id desc);
create index bookings_customer on bookings (tenant_id, livemode, customer_id, created_at desc, id desc);
create index bookings_service on bookings (tenant_id, livemode, service_id, created_at desc, id desc);
create index bookings_unit on bookings (tenant_id, livemode, unit_id, created_at desc, id desc);
create index bookings_package on bookings (tenant_id, livemode, package_id, created_at desc, id desc);
create index bookings_type on bookings (tenant_id, livemode, event_type, created_at desc, id desc);
create index bookings_day on bookings (tenant_id, livemode, event_day);
create index bookings_holds on bookings (tenant_id, livemode, unit_id, hold_expires_at)
    where status = 'pending' and hold_expires_at is not null;

-- The pairs of bookings' metadata, written with the booking: an index that SQL cannot declare.
create table booking_metadata (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key                   text collate "C" not null,
    value                 text collate "C" not null,
    booking_id            uuid        not null,
    primary key (tenant_id, livemode, key, value, booking_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_metadata_booking on booking_metadata (tenant_id, livemode, booking_id);

-- The last wall against a double booking. starts_at and ends_at include the buffers; they stand beside the
-- range because && is not leakproof, and so no index condition for a tenant's query.
create table unit_claims (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id            uuid        not null,
    unit_id               uuid        not null,
    starts_at             timestamptz not null,
    ends_at               timestamptz not null,
    during                tstzrange   not null generated always as (tstzrange(starts_at, ends_at)) stored,
    primary key (tenant_id, livemode, booking_id),
    foreign key (tenant_id, livemode, booking_id) references bookings,
    foreign key (tenant_id, livemode, unit_id) references units,
    constraint unit_claims_no_overlap exclude using gist
        (tenant_id with =, livemode with =, unit_id with =, during with &&)
);
create index unit_claims_unit on unit_claims (tenant_id, livemode, unit_id, starts_at);

-- The next free number of bookings. Processes take them in blocks, so that commits do not queue here.
create table booking_counters (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next                  bigint      not null,
    primary key (tenant_id, livemode)
);

create index services_created on services (tenant_id, livemode, created_at desc, id desc);
create index services_updated on services (tenant_id, livemode, updated_at, id);
create index units_created on units (tenant_id, livemode, created_at desc, id desc);
create index units_updated on units (tenant_id, livemode, updated_at, id);
create index packages_created on packages (tenant_id, livemode, created_at desc, id desc);
create index packages_updated on packages (tenant_id, livemode, updated_at, id);

select protect(t) from unnest(array['services', 'units', 'unit_services', 'packages', 'package_units', 'holiday_rules', 'customers',
    'bookings', 'booking_metadata', 'unit_claims', 'booking_counters']::regclass[]) t;

-- +goose Down
drop table booking_counters, unit_claims, booking_metadata, bookings, customers, holiday_rules, package_units, packages,
    unit_services, units, services;
