-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- A row is what a policy owes a payer. It is open until refunds have returned it, or a person closes it. A row that the version before
-- writes has no id and is due at once: a worker fills in the rest.
alter table automatic_refunds
    add column id uuid,
    add column booking_id uuid,
    add column currency text,                                 -- of wanted
    add column state text not null default 'open' check (state in ('open', 'done', 'closed')),
    add column since timestamptz not null default '1970-01-01 00:00:00+00', -- refunds that were made from then on count
    add column elsewhere bigint not null default 0,           -- what others had refunded of its payments by then: it does not count
    add column remaining bigint,                              -- what was not returned when it was last looked at; null: it was not yet
    add column tries integer not null default 0,              -- refunds that were made for it
    add column due_at timestamptz default '1970-01-01 00:00:00+00', -- when it is looked at again; null: never by itself
    add column retry_at timestamptz,                          -- until then no payment is tried again whose refund has failed
    add column failed_at timestamptz,                         -- since when it cannot be returned; null: nothing has failed
    add column failure json,                                  -- domain.Failure, the last one
    add column closed_at timestamptz,
    add column closed_by text,                                -- op_…
    add column closed_note text,
    add column version bigint not null default 1;
create unique index automatic_refunds_id on automatic_refunds (tenant_id, livemode, id);
create index automatic_refunds_booking on automatic_refunds (tenant_id, livemode, booking_id);
create index automatic_refunds_open on automatic_refunds (tenant_id, livemode, created_at desc, id desc) where state = 'open';
create index automatic_refunds_due on automatic_refunds (due_at) where due_at is not null;
create index automatic_refunds_failed on automatic_refunds (failed_at) where state = 'open' and failed_at is not null;
select open_to_worker('automatic_refunds', 'select');

alter table refunds add column owed_id uuid;                  -- of the row of automatic_refunds that it was made for

-- +goose Down
alter table refunds drop column owed_id;
drop policy worker on automatic_refunds;
drop index automatic_refunds_id, automatic_refunds_booking, automatic_refunds_open, automatic_refunds_due, automatic_refunds_failed;
alter table automatic_refunds
    drop column id, drop column booking_id, drop column currency, drop column state, drop column since, drop column elsewhere,
    drop column remaining, drop column tries, drop column due_at, drop column retry_at, drop column failed_at, drop column failure,
    drop column closed_at, drop column closed_by, drop column closed_note, drop column version;
