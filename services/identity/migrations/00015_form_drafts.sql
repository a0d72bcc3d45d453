-- +goose ENVSUB ON
-- +goose Up
-- What operators have entered into forms of the console when they had to sign in again.
create table form_drafts (
    operator_id uuid        not null references operators (id),
    key         text        not null, -- Idempotency-Key of the form
    sealed      bytea       not null, -- domain.Draft as JSON
    created_at  timestamptz not null,
    primary key (operator_id, key)
);
create index form_drafts_created on form_drafts (created_at);
grant select, insert, update, delete on form_drafts to "${APP_ROLE}", "${WORKER_ROLE}";

-- +goose Down
drop table form_drafts;
