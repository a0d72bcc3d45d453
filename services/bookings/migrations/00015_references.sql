-- migrationlint:allow revoke: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- Each foreign key locks the row that it refers to, and so writes it, with every booking. Instead, a booking's transaction reads the
-- rows, triggers prevent their deletion, and `bookings integrity` finds what refers to no row.
alter table unit_claims
    drop constraint unit_claims_tenant_id_livemode_booking_id_fkey,
    drop constraint unit_claims_tenant_id_livemode_unit_id_fkey;
alter table bookings
    drop constraint bookings_tenant_id_livemode_customer_id_fkey,
    drop constraint bookings_tenant_id_livemode_service_id_fkey,
    drop constraint bookings_tenant_id_livemode_unit_id_fkey,
    drop constraint bookings_tenant_id_livemode_package_id_fkey;

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

-- +goose ENVSUB ON
revoke delete on customers, services, units, packages, bookings from "${APP_ROLE}";
-- +goose ENVSUB OFF

-- +goose Down
-- +goose ENVSUB ON
grant delete on customers, services, units, packages, bookings to "${APP_ROLE}";
drop trigger keep_referenced on bookings;
drop trigger keep_referenced on packages;
drop trigger keep_referenced on units;
drop trigger keep_referenced on services;
drop trigger keep_referenced on customers;
drop function keep_referenced;
alter table bookings
    add foreign key (tenant_id, livemode, customer_id) references customers,
    add foreign key (tenant_id, livemode, service_id) references services,
    add foreign key (tenant_id, livemode, unit_id) references units,
    add foreign key (tenant_id, livemode, package_id) references packages;
alter table unit_claims
    add foreign key (tenant_id, livemode, booking_id) references bookings,
    add foreign key (tenant_id, livemode, unit_id) references units;
