-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists leads_person;
create index concurrently leads_person on leads (tenant_id, livemode, person_id, created_at desc, id desc);

-- +goose Down
drop index concurrently if exists leads_person;
