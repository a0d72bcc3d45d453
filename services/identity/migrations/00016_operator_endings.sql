-- +goose ENVSUB ON
-- +goose Up
-- What is still to end of operators that were disabled, erased or have proven their address. The process that began it ends it, or a worker.
create table operator_endings (
    operator_id uuid        not null references operators (id),
    reason      text        not null,  -- why its grants end
    erase       boolean     not null,  -- its memberships and what is held of it as a person end too
    actor       text        not null,  -- who has asked, and from where, for the audit log
    source      text        not null,
    noted_at    timestamptz not null,  -- grants that were given until then end
    due_at      timestamptz not null,
    primary key (operator_id, reason)
);
create index operator_endings_due on operator_endings (due_at);
grant select, insert, update, delete on operator_endings to "${APP_ROLE}";

-- +goose Down
drop table operator_endings;
