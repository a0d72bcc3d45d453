-- migrationlint:allow unreadable: it only grants a right to a role whose name is a setting
-- +goose Up
-- How many partitions keys are distributed over: of the relays ('relays'), and of a topic that was increased (its name). The relay
-- reads it in the transaction that sends the rows. Only the commands outbox and topics write it, while no relay sends.
create table outbox_partitions (
    name       text    primary key,
    partitions integer not null check (partitions between 1 and 1024),
    check (name <> 'relays' or partitions % 8 = 0)
);
insert into outbox_partitions values ('relays', 64);

-- +goose StatementBegin
do $$ begin execute format('grant select on outbox_partitions to %I', worker_role()); end $$;
-- +goose StatementEnd

-- +goose Down
drop table outbox_partitions;
