-- migrationlint:allow column-rewrite: there is one row for each tenant, so the rewrite takes less than a second
-- migrationlint:allow constraint-index: there is one row for each tenant, so the index is built in milliseconds
-- migrationlint:allow index-lock: there is one row for each tenant, so the index is built in milliseconds
-- +goose ENVSUB OFF
-- +goose Up
-- The words of a text by which a tenant is found: without case and accents, at most 100 characters of each. A generated column and the
-- search use this function, so that both split a text in the same way.
-- +goose StatementBegin
create function search_words(content text) returns text[]
language sql immutable strict parallel safe return array(
    select left(w, 100) from regexp_split_to_table(
        replace(lower(regexp_replace(normalize(content, NFKD), '[\u0300-\u036f]', '', 'g')), 'ß', 'ss'),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+') w
    where w <> '');
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function search_words(text) from public;
grant execute on function search_words(text) to "${APP_ROLE}", "${WORKER_ROLE}";
grant execute on function oldest_write() to "${WORKER_ROLE}"; -- lists all tenants in the order of their changes

alter table tenants
    add column external_id text constraint tenants_external_id_key unique, -- of the tenant in the platform's own system
    add column metadata    json, -- of the platform; null: empty
    add column search      tsvector generated always as (array_to_tsvector(search_words(slug || ' ' || name || ' ' || coalesce(external_id, '')))) stored;
create index tenants_search on tenants using gin (search);
create index tenants_updated_at on tenants (updated_at, tenant_id);

-- +goose Down
drop index tenants_updated_at;
alter table tenants drop column search, drop column metadata, drop column external_id;
revoke execute on function oldest_write() from "${WORKER_ROLE}";
drop function search_words(text);
