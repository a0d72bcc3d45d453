-- +goose Up
-- Times at which units accept no bookings. Null unit_ids mean all units, including later ones. starts_at and ends_at are the first and
-- the last instant of the dates, if a closure has dates.
create table closures (
    tenant_id             uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode              boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id                    uuid        not null,
    name                  text        not null,
    unit_ids              uuid[]      check (cardinality(unit_ids) > 0),
    date_from             date,
    date_to               date,
    starts_at             timestamptz not null,
    ends_at               timestamptz not null,
    timezone              text        not null,
    version               bigint      not null default 1,
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, livemode, id),
    constraint closures_span check (starts_at < ends_at),
    constraint closures_dates check ((date_from is null) = (date_to is null))
);
create index closures_created on closures (tenant_id, livemode, created_at desc, id desc);
create index closures_updated on closures (tenant_id, livemode, updated_at, id);
create index closures_time on closures (tenant_id, livemode, ends_at, starts_at);

select protect('closures'::regclass);

-- A booking cannot be created in a closure or moved into it. The writer of a closure locks its units first, as each writer of a booking
-- does, so one of the two always sees the other. The error has the name of the claims' constraint, so that the previous version also
-- returns 409 for it. The name of the table tells the two errors apart.
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

-- +goose Down
drop trigger bookings_into_closure on bookings;
drop trigger bookings_in_closure on bookings;
drop function refuse_in_closure();
drop table closures;
