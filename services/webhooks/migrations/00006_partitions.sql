-- +goose Up
-- keep_partitions makes the weeks from a time that is kept to one that comes; neither readers nor writers wait for it.
-- Those that ended before are dropped by "webhooks partitions" as the owner: a function cannot detach concurrently.
-- +goose StatementBegin
create or replace function keep_partitions(kept timestamptz, until timestamptz) returns void
language plpgsql volatile security definer set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
    parent text;
    week   timestamptz;
    child  text;
begin
    perform pg_advisory_xact_lock(hashtext('keep_partitions'));
    foreach parent in array array['events', 'deliveries'] loop
        week := date_trunc('week', kept);
        while week <= until loop
            child := format('%s_%s', parent, to_char(week, 'YYYYMMDD'));
            if to_regclass(child) is null then
                execute format('create table %I (like %I including defaults including constraints)', child, parent);
                execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                    parent, child, uuid_floor(week), uuid_floor(week + interval '7 days'));
            end if;
            week := week + interval '7 days';
        end loop;
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function keep_partitions(kept timestamptz, until timestamptz) returns void
language plpgsql volatile security definer set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
    parent text;
    week   timestamptz;
    child  text;
begin
    perform pg_advisory_xact_lock(hashtext('keep_partitions'));
    foreach parent in array array['events', 'deliveries'] loop
        week := date_trunc('week', kept);
        while week <= until loop
            child := format('%s_%s', parent, to_char(week, 'YYYYMMDD'));
            if to_regclass(child) is null then
                execute format('create table %I (like %I including defaults including constraints)', child, parent);
                execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                    parent, child, uuid_floor(week), uuid_floor(week + interval '7 days'));
            end if;
            week := week + interval '7 days';
        end loop;
        for child in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = parent::regclass loop
            if to_date(right(child, 8), 'YYYYMMDD') < (date_trunc('week', kept))::date then
                execute format('drop table %I', child);
            end if;
        end loop;
    end loop;
end $$;
-- +goose StatementEnd
