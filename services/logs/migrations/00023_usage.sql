-- +goose ENVSUB ON
-- +goose Up
-- The requests of each day, by class, as the gateways counted them: all requests, not only those in the log.
create table request_counts (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    day       date    not null,
    class     text    not null,
    requests  bigint  not null,
    primary key (tenant_id, livemode, day, class)
);
create index request_counts_day on request_counts (day);

-- The last day that was measured. Requests of an earlier day that are counted afterwards belong to the next one.
create table request_counts_sealed (
    tenant_id uuid    not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    through   date    not null,
    primary key (tenant_id, livemode)
);

select protect(t) from unnest(array['request_counts', 'request_counts_sealed']::regclass[]) t;
select open_to_worker('request_counts', 'select, insert, update, delete'), open_to_worker('request_counts_sealed', 'select');
grant insert on inbox to "${WORKER_ROLE}";

-- +goose Down
revoke insert on inbox from "${WORKER_ROLE}";
drop table request_counts_sealed, request_counts;
