-- +goose NO TRANSACTION
-- +goose Up
-- The credit note that a refund was made for. The index keeps it to one refund per credit note.
alter table refunds add column if not exists credit_note_id uuid;
drop index concurrently if exists refunds_credit_note;
create unique index concurrently refunds_credit_note on refunds (tenant_id, livemode, credit_note_id) where credit_note_id is not null;

-- +goose Down
drop index concurrently if exists refunds_credit_note;
alter table refunds drop column if exists credit_note_id;
