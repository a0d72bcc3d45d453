-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose Up
alter table bookings add column cancel_policy json; -- the booking policy as it was when it was cancelled

-- For the expiry of all tenants, and of one whose test clock has moved: neither reads a hold that is not due.
create index bookings_due on bookings (hold_expires_at, id)
    where status = 'pending' and hold_expires_at is not null;
create index bookings_due_of_tenant on bookings (tenant_id, livemode, hold_expires_at, id)
    where status = 'pending' and hold_expires_at is not null;

-- What is known here of the tenant's test clock, which identity owns. The row stays when real time returns, so
-- that news that comes late is recognised as old.
create table test_clocks (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    frozen_at             timestamptz,                -- null: real time
    version               bigint      not null,       -- the tenant's
    primary key (tenant_id, livemode)
);
create index test_clocks_frozen on test_clocks (tenant_id, livemode) where frozen_at is not null;

create index holiday_rules_created on holiday_rules (tenant_id, livemode, created_at desc, id desc);
create index holiday_rules_updated on holiday_rules (tenant_id, livemode, updated_at, id);

select protect('test_clocks'::regclass);

-- The worker finds what is due, and no more; it is expired in its own tenant's transaction.
select open_to_worker('bookings', 'select (tenant_id, livemode, id, status, hold_expires_at)');
select open_to_worker('test_clocks', 'select');

-- +goose Down
drop index holiday_rules_updated, holiday_rules_created, bookings_due_of_tenant, bookings_due;
drop table test_clocks;
alter table bookings drop column cancel_policy;
