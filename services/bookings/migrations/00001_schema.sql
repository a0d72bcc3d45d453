-- +goose ENVSUB ON
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
    default_taxes         json, -- of lines of quotes and invoices that specify none (money.Tax); null: those of the operator
    primary key (tenant_id, livemode, id)
);
create index services_created on services (tenant_id, livemode, created_at desc, id desc);
create index services_updated on services (tenant_id, livemode, updated_at, id);

create table units (
    tenant_id     uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode      boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id            uuid        not null,
    name          text        not null,
    description   text,
    status        text        not null default 'active' check (status in ('active', 'maintenance', 'retired')),
    capacity      integer     check (capacity >= 0),
    opening_hours json,
    version       bigint      not null default 1,
    created_at    timestamptz not null default clock_timestamp(),
    updated_at    timestamptz not null default clock_timestamp(),
    booking_mode  text        not null default 'exclusive' check (booking_mode in ('exclusive', 'seats')),
    primary key (tenant_id, livemode, id),
    constraint units_seats check (booking_mode = 'exclusive' or capacity >= 1)
);
create index units_created on units (tenant_id, livemode, created_at desc, id desc);
create index units_updated on units (tenant_id, livemode, updated_at, id);

create table unit_services (
    tenant_id  uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    unit_id    uuid    not null,
    service_id uuid    not null,
    primary key (tenant_id, livemode, unit_id, service_id),
    foreign key (tenant_id, livemode, unit_id) references units,
    foreign key (tenant_id, livemode, service_id) references services
);
create index unit_services_service on unit_services (tenant_id, livemode, service_id, unit_id);

create table packages (
    tenant_id        uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode         boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id               uuid        not null,
    service_id       uuid        not null,
    name             text        not null,
    description      text,
    currency         text        not null,
    base_price       bigint      not null check (base_price >= 0),
    deposit_type     text        not null default 'none' check (deposit_type in ('none', 'flat', 'percentage')),
    deposit_value    bigint      not null default 0 check (deposit_value >= 0),
    duration_minutes integer     check (duration_minutes > 0),
    visible          boolean     not null default true,
    active           boolean     not null default true,
    version          bigint      not null default 1,
    created_at       timestamptz not null default clock_timestamp(),
    updated_at       timestamptz not null default clock_timestamp(),
    pricing          text        not null default 'per_booking' check (pricing in ('per_booking', 'per_guest')),
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, service_id) references services
);
create index packages_created on packages (tenant_id, livemode, created_at desc, id desc);
create index packages_updated on packages (tenant_id, livemode, updated_at, id);
create index packages_service on packages (tenant_id, livemode, service_id, created_at desc, id desc);

create table package_units (
    tenant_id  uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    package_id uuid    not null,
    unit_id    uuid    not null,
    primary key (tenant_id, livemode, package_id, unit_id),
    foreign key (tenant_id, livemode, package_id) references packages,
    foreign key (tenant_id, livemode, unit_id) references units
);

-- Empty service_ids and package_ids mean that the rule applies to all.
create table holiday_rules (
    tenant_id      uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode       boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id             uuid        not null,
    name           text        not null,
    date_from      date        not null,
    date_to        date        not null,
    recurrence     text        not null default 'none' check (recurrence in ('none', 'yearly')),
    multiplier_bps bigint      not null check (multiplier_bps >= 0),
    service_ids    uuid[]      not null default '{}',
    package_ids    uuid[]      not null default '{}',
    priority       integer     not null default 0,
    stackable      boolean     not null default false,
    active         boolean     not null default true,
    version        bigint      not null default 1,
    created_at     timestamptz not null default clock_timestamp(),
    updated_at     timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id)
);
create index holiday_rules_created on holiday_rules (tenant_id, livemode, created_at desc, id desc);
create index holiday_rules_updated on holiday_rules (tenant_id, livemode, updated_at, id);

-- Times at which units accept no bookings. Null unit_ids mean all units, including later ones. starts_at and ends_at are the first and
-- the last instant of the dates, if a closure has dates.
create table closures (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id         uuid        not null,
    name       text        not null,
    unit_ids   uuid[]      check (cardinality(unit_ids) > 0),
    date_from  date,
    date_to    date,
    starts_at  timestamptz not null,
    ends_at    timestamptz not null,
    timezone   text        not null,
    version    bigint      not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id),
    constraint closures_span check (starts_at < ends_at),
    constraint closures_dates check ((date_from is null) = (date_to is null))
);
create index closures_created on closures (tenant_id, livemode, created_at desc, id desc);
create index closures_updated on closures (tenant_id, livemode, updated_at, id);
create index closures_time on closures (tenant_id, livemode, ends_at, starts_at);

-- What is known here of the customers service's rows; kept by its events.
create table customers (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        uuid    not null,
    name      text    not null,
    version   bigint  not null,
    erased    boolean not null default false,
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

-- The states of tenants, from identity's events. A tenant without a row is active.
create table tenant_states (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    status    text    not null,
    version   bigint  not null, -- of the tenant
    primary key (tenant_id, livemode)
);

-- A foreign key would lock the row that it refers to, and so write it, with every booking. Instead, a booking's transaction reads the
-- rows, triggers prevent their deletion (keep_referenced), and `bookings integrity` finds what refers to no row.
create table bookings (
    tenant_id        uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode         boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id               uuid        not null,
    number           text        not null,
    status           text        not null check (status in ('pending', 'confirmed', 'expired', 'cancelled', 'completed', 'no_show')),
    customer_id      uuid,
    lead_id          uuid,
    quote_id         uuid,
    service_id       uuid,
    unit_id          uuid,
    package_id       uuid,
    package_snapshot json,
    event_type       text,
    event_day        date        not null, -- at the operator's
    event_start      text,                 -- HH:MM; null: a whole day
    event_end        text,                 -- HH:MM; null: follows from a duration
    starts_at        timestamptz,
    ends_at          timestamptz,
    timezone         text        not null,
    guest_count      integer,
    notes            text,
    currency         text        not null,
    total            bigint      not null,
    deposit          bigint      not null,
    paid             bigint      not null,
    refunded         bigint      not null,
    payment_status   text        not null,
    hold_expires_at  timestamptz,
    cancel_reason    text,
    metadata         json,                 -- json, not jsonb: the order of keys and duplicates survive
    version          bigint      not null default 1,
    created_at       timestamptz not null default clock_timestamp(),
    updated_at       timestamptz not null default clock_timestamp(),
    confirmed_at     timestamptz,
    cancelled_at     timestamptz,
    completed_at     timestamptz,
    cancel_policy    json,                 -- the booking policy as it was when the booking was cancelled
    event_at         timestamptz,          -- the instant that was given for the day; null: the day's first
    disputed         boolean     not null default false,
    refund_due       bigint      check (refund_due >= 0), -- by the policy, from the cancellation on; null: the policy specifies nothing
    exclusive        boolean     not null default false,
    session_id       uuid,                 -- of unit_claims, if the unit is booked by seats
    seats            integer,              -- count while the booking is pending or confirmed
    sort_starts_at   timestamptz,          -- place in a list by start: the start, or the first instant of a day without times; a trigger sets it
    gross            bigint      not null, -- the total with taxes
    taxes            json,                 -- domain.Taxes
    -- Money belongs to payments, and documents belong to customers. These columns are copies from their events, which show what is due.
    account_version  bigint      not null default 0,     -- of the account at payments that paid and refunded show
    invoiced         bigint      not null default 0,     -- sums of its invoices: totals,
    dues             bigint      not null default 0,     -- amounts due,
    placed           bigint      not null default 0,     -- payments,
    credited         bigint      not null default 0,     -- and credit notes
    deposit_paid     boolean     not null default false, -- it has a deposit invoice, and nothing is due on any
    ended_account    json,                 -- domain.AccountState when the booking was cancelled; null: it was not
    expired_at       timestamptz,          -- when a test clock ended the hold, in real time; null: at hold_expires_at, or not
    primary key (tenant_id, livemode, id),
    constraint bookings_number unique (tenant_id, livemode, number),
    constraint bookings_span check (starts_at < ends_at),
    constraint bookings_seats check ((session_id is null) = (seats is null) and seats >= 1)
);
-- Under row-level security only leakproof comparisons reach an index; = on uuid and text and < on date are.
create index bookings_created on bookings (tenant_id, livemode, created_at desc, id desc);
create index bookings_updated on bookings (tenant_id, livemode, updated_at, id);
create index bookings_starts on bookings (tenant_id, livemode, sort_starts_at, id);
create index bookings_status on bookings (tenant_id, livemode, status, created_at desc, id desc);
create index bookings_payment on bookings (tenant_id, livemode, payment_status, created_at desc, id desc);
create index bookings_customer on bookings (tenant_id, livemode, customer_id, created_at desc, id desc);
create index bookings_service on bookings (tenant_id, livemode, service_id, created_at desc, id desc);
create index bookings_unit on bookings (tenant_id, livemode, unit_id, created_at desc, id desc);
create index bookings_package on bookings (tenant_id, livemode, package_id, created_at desc, id desc);
create index bookings_type on bookings (tenant_id, livemode, event_type, created_at desc, id desc);
create index bookings_day on bookings (tenant_id, livemode, event_day);
create index bookings_unit_day on bookings (tenant_id, livemode, unit_id, event_day, id);
-- The bookings that take some of a local day after their first one, by their own clock: a list of a day finds the night before it.
create index bookings_past_day on bookings (tenant_id, livemode, event_day)
    where ends_at at time zone timezone > event_day + 1;
create index bookings_holds on bookings (tenant_id, livemode, unit_id, hold_expires_at)
    where status = 'pending' and hold_expires_at is not null;
-- For the expiry of all tenants, and of one whose test clock has moved: neither reads a hold that is not due.
create index bookings_due on bookings (hold_expires_at, id)
    where status = 'pending' and hold_expires_at is not null;
create index bookings_due_of_tenant on bookings (tenant_id, livemode, hold_expires_at, id)
    where status = 'pending' and hold_expires_at is not null;
create index bookings_session on bookings (tenant_id, livemode, session_id) where session_id is not null and status = 'pending';
-- A quote has one booking forever. A converted lead has one booking forever, but the booking of a quote names the quote's lead too.
create unique index bookings_quote on bookings (tenant_id, livemode, quote_id) where quote_id is not null;
create unique index bookings_lead on bookings (tenant_id, livemode, lead_id) where lead_id is not null and quote_id is null;
-- The bookings that share time with a range of days are mostly found by the day on which they begin. Those of more than a day may have
-- begun long before: each belongs to one of these indexes by its length, so that few are read that ended before.
create index bookings_over_1_day on bookings (tenant_id, livemode, starts_at)
    where ends_at - starts_at > interval '1 day' and ends_at - starts_at <= interval '8 days';
create index bookings_over_8_days on bookings (tenant_id, livemode, starts_at)
    where ends_at - starts_at > interval '8 days' and ends_at - starts_at <= interval '64 days';
create index bookings_over_64_days on bookings (tenant_id, livemode, ends_at)
    where ends_at - starts_at > interval '64 days';

-- The pairs of bookings' metadata, written with the booking: an index that SQL cannot declare.
create table booking_metadata (
    tenant_id  uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key        text collate "C" not null,
    value      text collate "C" not null,
    booking_id uuid             not null,
    primary key (tenant_id, livemode, key, value, booking_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_metadata_booking on booking_metadata (tenant_id, livemode, booking_id);

-- The last protection against a double booking. starts_at and ends_at include the buffers; they stand beside the
-- range because && is not leakproof, and so no index condition for a tenant's query.
-- A session is a claim of a unit for all bookings that share a slot. booking_id is then the id of the session, slot_from and slot_to
-- are the slot without buffers, and taken is the sum of the seats of its bookings.
create table unit_claims (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    booking_id uuid        not null,
    unit_id    uuid        not null,
    starts_at  timestamptz not null,
    ends_at    timestamptz not null,
    during     tstzrange   not null generated always as (tstzrange(starts_at, ends_at)) stored,
    slot_from  timestamptz,
    slot_to    timestamptz,
    capacity   integer,
    taken      integer,
    primary key (tenant_id, livemode, booking_id),
    constraint unit_claims_session check (num_nulls(slot_from, slot_to, capacity, taken) in (0, 4)),
    constraint unit_claims_seats check (taken between 0 and capacity),
    constraint unit_claims_no_overlap exclude using gist
        (tenant_id with =, livemode with =, unit_id with =, during with &&)
);
create index unit_claims_unit on unit_claims (tenant_id, livemode, unit_id, starts_at);

-- The next free number of bookings. Processes take them in blocks, so that commits do not queue here.
create table booking_counters (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    next      bigint  not null,
    primary key (tenant_id, livemode)
);

-- What is known here of the invoices of bookings; kept by the events of the customers service. An invoice without a
-- booking has a row too, so that an old event cannot give it back the booking that it had as a draft.
create table booking_invoices (
    tenant_id  uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    invoice_id text collate "C" not null, -- sorts by the time of its creation
    booking_id uuid,
    version    bigint           not null,
    currency   text             not null default '',
    opened     boolean          not null default false, -- it is neither a draft nor void
    deposit    boolean          not null default false,
    total      bigint           not null default 0,
    due        bigint           not null default 0,
    paid       bigint           not null default 0,
    credited   bigint           not null default 0,
    primary key (tenant_id, livemode, invoice_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_invoices_booking on booking_invoices (tenant_id, livemode, booking_id, invoice_id) where booking_id is not null;

-- The payments of bookings. A payment at the gateway is known by the gateway's id, which is no uuid, and belongs to no invoice.
create table booking_payments (
    tenant_id   uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode    boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    payment_id  text collate "C" not null,
    booking_id  uuid             not null,
    invoice_id  text             not null,
    amount      bigint           not null check (amount >= 0),
    currency    text             not null,
    reversed_at timestamptz,     -- once set, it stays
    source      text             not null default 'manual' check (source in ('manual', 'gateway')),
    refunded    bigint           not null default 0 check (refunded >= 0),
    version     bigint           not null default 0, -- of the account; 0: the account has not reported it
    id          uuid             not null default gen_random_uuid(),
    created_at  timestamptz      not null default clock_timestamp(),
    paid_at     timestamptz,     -- null: an event that contains it has not arrived
    disputed    boolean          not null default false,
    primary key (tenant_id, livemode, payment_id),
    foreign key (tenant_id, livemode, booking_id) references bookings
);
create index booking_payments_listed on booking_payments (tenant_id, livemode, booking_id, created_at desc, id desc);

create table calendar_feeds (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    name            text        not null,
    unit_id         uuid,
    include_details boolean     not null,
    timezone        text        not null, -- the operator's when the feed was created: its days are counted in it
    hash            bytea       not null constraint calendar_feeds_hash_key unique, -- SHA-256; the token itself is not stored
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    created_by      text,       -- the credential that created the feed
    holder          text,       -- the credential with which the feed ends: created_by, or the key that replaced it in a rotation
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, unit_id) references units
);
create index calendar_feeds_created on calendar_feeds (tenant_id, livemode, created_at desc, id desc);
create index calendar_feeds_updated on calendar_feeds (tenant_id, livemode, updated_at, id);

select protect(t) from unnest(array['services', 'units', 'unit_services', 'packages', 'package_units', 'holiday_rules', 'closures', 'customers',
    'test_clocks', 'tenant_states', 'bookings', 'booking_metadata', 'unit_claims', 'booking_counters', 'booking_invoices', 'booking_payments',
    'calendar_feeds']::regclass[]) t;
revoke delete on customers, services, units, packages, bookings from "${APP_ROLE}";
-- The worker finds what is due, and no more. Each booking is expired in its own tenant's transaction.
select open_to_worker('bookings', 'select (tenant_id, livemode, id, status, hold_expires_at)'), open_to_worker('test_clocks', 'select'),
       open_to_worker('calendar_feeds', 'select (tenant_id, livemode, id, holder)');

-- +goose ENVSUB OFF
-- Its arguments are a table and a column: a row that they refer to stays.
-- +goose StatementBegin
create function keep_referenced() returns trigger language plpgsql as $$
declare
    referenced boolean;
begin
    execute format('select exists (select from %I where tenant_id = $1 and livemode = $2 and %I = $3)', tg_argv[0], tg_argv[1])
        into referenced using old.tenant_id, old.livemode, old.id;
    if referenced then
        raise foreign_key_violation using message = format('%s %s is referenced by %s.%s', tg_table_name, old.id, tg_argv[0], tg_argv[1]);
    end if;
    return old;
end $$;
-- +goose StatementEnd
create trigger keep_referenced before delete on customers for each row execute function keep_referenced('bookings', 'customer_id');
create trigger keep_referenced before delete on services for each row execute function keep_referenced('bookings', 'service_id');
create trigger keep_referenced before delete on units for each row execute function keep_referenced('bookings', 'unit_id');
create trigger keep_referenced before delete on packages for each row execute function keep_referenced('bookings', 'package_id');
create trigger keep_referenced before delete on bookings for each row execute function keep_referenced('unit_claims', 'booking_id');

-- A booking cannot be created in a closure or moved into it. The writer of a closure locks its units first, as each writer of a booking
-- does, so one of the two always sees the other. The error has the name of the claims' constraint. The name of the table tells the two
-- errors apart.
-- +goose StatementBegin
create function refuse_in_closure() returns trigger language plpgsql as $$
begin
    if exists (select from closures c where c.tenant_id = new.tenant_id and c.livemode = new.livemode
            and c.ends_at > new.starts_at and c.starts_at < new.ends_at
            and (c.unit_ids is null or new.unit_id = any (c.unit_ids))) then
        raise exclusion_violation using message = 'a closure overlaps the booking', constraint = 'unit_claims_no_overlap', table = 'closures';
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger bookings_in_closure before insert on bookings
    for each row when (new.unit_id is not null) execute function refuse_in_closure();
create trigger bookings_into_closure before update of unit_id, starts_at, ends_at on bookings
    for each row when (new.unit_id is not null
        and (new.unit_id, new.starts_at, new.ends_at) is distinct from (old.unit_id, old.starts_at, old.ends_at))
    execute function refuse_in_closure();

-- A write of a booking moves its seats, whichever code writes it. The last booking closes its session.
-- +goose StatementBegin
create function count_seats() returns trigger language plpgsql as $$
declare
    freed integer := 0;
    taking integer := 0;
begin
    if tg_op = 'UPDATE' and old.session_id is not null and old.status in ('pending', 'confirmed') then
        freed := old.seats;
    end if;
    if new.session_id is not null and new.status in ('pending', 'confirmed') then
        taking := new.seats;
    end if;
    if freed > 0 and taking > 0 and (old.session_id, old.unit_id, old.starts_at, old.ends_at)
            is not distinct from (new.session_id, new.unit_id, new.starts_at, new.ends_at) then
        taking := taking - freed;
        freed := 0;
    end if;
    if freed > 0 then
        update unit_claims set taken = taken - freed
            where tenant_id = old.tenant_id and livemode = old.livemode and booking_id = old.session_id and capacity is not null;
        delete from unit_claims
            where tenant_id = old.tenant_id and livemode = old.livemode and booking_id = old.session_id and taken = 0;
    end if;
    if taking <> 0 then
        update unit_claims set taken = taken + taking
            where tenant_id = new.tenant_id and livemode = new.livemode and booking_id = new.session_id and unit_id = new.unit_id
              and slot_from = new.starts_at and slot_to = new.ends_at;
        if not found then
            raise foreign_key_violation using message = format('booking %s takes seats in no session of its slot', new.id);
        end if;
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger count_seats_of_new after insert on bookings
    for each row when (new.session_id is not null) execute function count_seats();
create trigger count_seats after update of status, session_id, seats, unit_id, starts_at, ends_at on bookings
    for each row when (old.session_id is not null or new.session_id is not null) execute function count_seats();

-- A clock that goes back after midnight shows 00:00 twice, and PostgreSQL takes the later one: the instant after the last
-- microsecond of the day before is the first one.
-- +goose StatementBegin
create function booking_sort_start() returns trigger language plpgsql as $$
begin
    new.sort_starts_at := coalesce(new.starts_at, least(
        new.event_day::timestamp at time zone new.timezone,
        (new.event_day::timestamp - interval '1 microsecond') at time zone new.timezone + interval '1 microsecond'));
    return new;
end
$$;
-- +goose StatementEnd
create trigger bookings_sort_start before insert or update of starts_at, event_day on bookings
    for each row execute function booking_sort_start();

-- The reader of a calendar has its token and nothing else, so this function runs as the owner, who sees all rows.
create function calendar_feed_by_hash(wanted bytea)
returns table (tenant_id uuid, livemode boolean, id uuid, name text, unit_id uuid, include_details boolean, timezone text, clock timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select f.tenant_id, f.livemode, f.id, f.name, f.unit_id, f.include_details, f.timezone, c.frozen_at
    from calendar_feeds f left join test_clocks c on c.tenant_id = f.tenant_id and c.livemode = f.livemode
    where f.hash = wanted
$$;

-- +goose ENVSUB ON
revoke all on function calendar_feed_by_hash(bytea) from public;
grant execute on function calendar_feed_by_hash(bytea) to "${APP_ROLE}";

-- +goose Down
drop table calendar_feeds, booking_payments, booking_invoices, booking_counters, unit_claims, booking_metadata, bookings, tenant_states, test_clocks,
    customers, closures, holiday_rules, package_units, packages, unit_services, units, services;
drop function calendar_feed_by_hash, booking_sort_start, count_seats, refuse_in_closure, keep_referenced;
