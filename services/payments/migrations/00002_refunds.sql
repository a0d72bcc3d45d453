-- migrationlint:allow constraint-scan: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- What holds an intent's money for refunds, under the lock of its row: no refund can be made of more than was received.
alter table payment_intents
    add column refund_reserved bigint not null default 0,     -- by refunds of this platform that are under way or were made
    add column refunded_elsewhere bigint not null default 0,  -- by others, such as in the gateway's dashboard, when it was last read
    add constraint payment_intents_reserved check (refund_reserved between 0 and received);

create table refunds (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,
    status          text        not null check (status in ('creating', 'refused', 'pending', 'succeeded', 'failed', 'requires_action',
                                                           'canceled')),
    shown           boolean     not null default false,       -- the gateway knows a part of it; only then it is listed
    amount          bigint      not null check (amount > 0),
    currency        text        not null,
    reason          text        not null check (reason in ('requested_by_customer', 'duplicate', 'fraudulent')),
    booking_id      uuid        not null,
    intent          text collate "C",                         -- pi_…, that the request named; null: it named the booking
    metadata        json,                                     -- json, not jsonb: the order of keys and duplicates survive
    version         bigint      not null default 1,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    -- The request that made it, until its key expires or the gateway has refused it.
    credential_id   text,
    key             text,
    fingerprint     bytea,
    leased_until    timestamptz,                              -- when another process may go on; null: nothing is under way
    primary key (tenant_id, livemode, id),
    constraint refunds_key unique (tenant_id, livemode, credential_id, key)
);
-- Under row-level security only leakproof comparisons reach an index. Refunds of which the gateway knows nothing are not listed.
create index refunds_created on refunds (tenant_id, livemode, created_at desc, id desc) where shown;
create index refunds_updated on refunds (tenant_id, livemode, updated_at, id) where shown;
create index refunds_status on refunds (tenant_id, livemode, status, created_at desc, id desc) where shown;
create index refunds_booking on refunds (tenant_id, livemode, booking_id, created_at desc, id desc) where shown;
create index refunds_leased on refunds (leased_until) where leased_until is not null;

-- The parts of a refund by payment intent. Each is one refund at the gateway, which has its id in its metadata.
create table refund_allocations (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    refund_id       uuid        not null,
    position        integer     not null,
    id              uuid        not null,
    intent_id       uuid        not null,
    amount          bigint      not null check (amount > 0),
    status          text        not null check (status in ('creating', 'refused', 'pending', 'succeeded', 'failed', 'requires_action',
                                                           'canceled')),
    gateway_id      text collate "C",                         -- re_…; null until the gateway's answer is known
    failure         json,                                     -- domain.Failure
    attempt         integer     not null,                     -- a part of the gateway's idempotency key: the same for the same effect
    attempted_at    timestamptz not null,                     -- not later than the attempt's first call: the gateway keeps its key for 24 h
    applied         bigint      not null default 0,           -- number of the last read of the gateway that was applied
    primary key (tenant_id, livemode, refund_id, position),
    constraint refund_allocations_id unique (tenant_id, livemode, id),
    constraint refund_allocations_known check ((status in ('creating', 'refused')) = (gateway_id is null)),
    foreign key (tenant_id, livemode, refund_id) references refunds,
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index refund_allocations_intent on refund_allocations (tenant_id, livemode, intent_id, refund_id);
create index refund_allocations_open on refund_allocations (tenant_id, livemode, intent_id, id)
    where status in ('pending', 'requires_action');

alter table gateway_events add column refund text;            -- re_…, of what it speaks; null: of none

select protect(t) from unnest(array['refunds', 'refund_allocations']::regclass[]) t;
select open_to_worker('refunds', 'select');

-- +goose Down
alter table gateway_events drop column refund;
drop table refund_allocations, refunds;
alter table payment_intents drop column refund_reserved, drop column refunded_elsewhere;
