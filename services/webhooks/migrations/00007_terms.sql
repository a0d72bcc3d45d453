-- migrationlint:allow rename: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- The tables get the field's names. The previous version runs on until it is replaced: it reads and writes them under the old names,
-- through views that the next release drops.
alter table lanes rename to endpoint_queues;
alter table endpoint_queues rename column crowded to throttled;
alter index lanes_pkey rename to endpoint_queues_pkey;
alter index lanes_ready rename to endpoint_queues_ready;
alter table signals rename to wakeups;
alter index signals_pkey rename to wakeups_pkey;
alter index signals_order rename to wakeups_order;
alter sequence signals_id_seq rename to wakeups_id_seq;
create view lanes with (security_invoker = true) as
    select tenant_id, livemode, endpoint_id, ready_at, throttled as crowded, begun_at, begun, failed_at, failed, deferred_until, deferrals, slow_until
    from endpoint_queues;
create view signals with (security_invoker = true) as select tenant_id, livemode, endpoint_id, id from wakeups;
-- +goose ENVSUB ON
grant select, insert, update, delete on lanes, signals to "${APP_ROLE}";
grant select, update on lanes to "${WORKER_ROLE}";
grant select, insert, update, delete on signals to "${WORKER_ROLE}";
-- +goose ENVSUB OFF

-- +goose Down
drop view lanes, signals;
alter sequence wakeups_id_seq rename to signals_id_seq;
alter index wakeups_order rename to signals_order;
alter index wakeups_pkey rename to signals_pkey;
alter table wakeups rename to signals;
alter index endpoint_queues_ready rename to lanes_ready;
alter index endpoint_queues_pkey rename to lanes_pkey;
alter table endpoint_queues rename column throttled to crowded;
alter table endpoint_queues rename to lanes;
