-- +goose NO TRANSACTION
-- Every statement can run again: a busy database stops and restarts this file.
-- migrationlint:allow column-check: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow constraint-scan: it precedes 1.0.0, so no released version runs during it
-- +goose Up
alter table units add column if not exists booking_mode text not null default 'exclusive' check (booking_mode in ('exclusive', 'seats'));
alter table units drop constraint if exists units_seats;
alter table units add constraint units_seats check (booking_mode = 'exclusive' or capacity >= 1);
alter table packages add column if not exists pricing text not null default 'per_booking' check (pricing in ('per_booking', 'per_guest'));

-- A session is a claim of a unit for all bookings that share a slot. booking_id is then the id of the session, slot_from and slot_to
-- are the slot without buffers, and taken is the sum of the seats of its bookings. The checks of existing claims would scan the table;
-- they have no seats.
alter table unit_claims
    add column if not exists slot_from timestamptz,
    add column if not exists slot_to   timestamptz,
    add column if not exists capacity  integer,
    add column if not exists taken     integer;
alter table unit_claims drop constraint if exists unit_claims_session, drop constraint if exists unit_claims_seats;
alter table unit_claims
    add constraint unit_claims_session check (num_nulls(slot_from, slot_to, capacity, taken) in (0, 4)) not valid,
    add constraint unit_claims_seats check (taken between 0 and capacity) not valid;

-- The seats of a booking count while it is pending or confirmed.
alter table bookings
    add column if not exists exclusive  boolean not null default false,
    add column if not exists session_id uuid,
    add column if not exists seats      integer;
alter table bookings drop constraint if exists bookings_seats;
alter table bookings add constraint bookings_seats check ((session_id is null) = (seats is null) and seats >= 1) not valid;
drop index concurrently if exists bookings_session;
create index concurrently bookings_session on bookings (tenant_id, livemode, session_id) where session_id is not null and status = 'pending';

-- A write of a booking moves its seats, whichever code writes it. The last booking closes its session.
-- +goose StatementBegin
create or replace function count_seats() returns trigger language plpgsql as $$
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
create or replace trigger count_seats_of_new after insert on bookings
    for each row when (new.session_id is not null) execute function count_seats();
create or replace trigger count_seats after update of status, session_id, seats, unit_id, starts_at, ends_at on bookings
    for each row when (old.session_id is not null or new.session_id is not null) execute function count_seats();

-- +goose Down
drop trigger if exists count_seats on bookings;
drop trigger if exists count_seats_of_new on bookings;
drop function if exists count_seats;
drop index concurrently if exists bookings_session;
alter table bookings drop column if exists seats, drop column if exists session_id, drop column if exists exclusive;
delete from unit_claims where capacity is not null;
alter table unit_claims drop column if exists taken, drop column if exists capacity, drop column if exists slot_to, drop column if exists slot_from;
alter table packages drop column if exists pricing;
alter table units drop column if exists booking_mode;
