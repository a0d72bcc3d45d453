-- migrationlint:allow unreadable: it only grants a right to a role whose name is a setting
-- +goose Up
-- One row. A restored database keeps it. The id is that of the platform whose Kafka topics the service uses (libs/kafkax), so that
-- another platform cannot use the same topics. The version is that of the executable that migrated last, null if it has none.
create table installation (
    single  boolean primary key default true check (single),
    id      uuid    not null default gen_random_uuid(),
    version text
);
insert into installation default values;

-- +goose StatementBegin
do $$ begin execute format('grant select on installation to %I', worker_role()); end $$;
-- +goose StatementEnd

-- +goose Down
drop table installation;
