-- +goose NO TRANSACTION
-- +goose ENVSUB ON
-- +goose Up
-- The version of a row whose words its words table holds. A row that the version before has written is behind, and a worker writes
-- its words. Erasure deletes the words in every version.
alter table customers add column if not exists search_version bigint not null default 0;
alter table leads add column if not exists search_version bigint not null default 0;
drop index concurrently if exists customers_unsearched;
create index concurrently customers_unsearched on customers (id) where search_version <> version;
drop index concurrently if exists leads_unsearched;
create index concurrently leads_unsearched on leads (id) where search_version <> version;
drop policy if exists worker on customers;
select open_to_worker('customers', 'select (tenant_id, livemode, id, version, search_version)');
grant select (version, search_version) on leads to "${WORKER_ROLE}";

-- +goose Down
revoke select (version, search_version) on leads from "${WORKER_ROLE}";
revoke select (tenant_id, livemode, id, version, search_version) on customers from "${WORKER_ROLE}";
drop policy if exists worker on customers;
drop index concurrently if exists leads_unsearched;
drop index concurrently if exists customers_unsearched;
alter table leads drop column if exists search_version;
alter table customers drop column if exists search_version;
