-- migrationlint:allow index-lock: it precedes 1.0.0, so no released version runs during it
-- +goose ENVSUB ON
-- +goose Up
-- Apps whose client_id is the URL of a document that describes them. They belong to no tenant, like those that registered themselves.
alter table oauth_apps
    add column document_url         text, -- the client_id; null for other apps
    add column document_fetched_at  timestamptz, -- when the fetch of the stored content began
    add column document_fresh_until timestamptz; -- from then on, a consent fetches the document again
create unique index oauth_apps_document on oauth_apps (document_url) where document_url is not null;

-- +goose ENVSUB OFF
-- Stores a valid document, and returns its app and whether the app changed. An older document does not replace a newer one. There is no row
-- if the platform has deleted the app. New apps count like those that registered themselves, by the source of the request.
-- +goose StatementBegin
create function put_document_app(new_id uuid, url text, new_name text, new_uris text[], new_scopes text[], source text, at timestamptz,
                                 fresh_until timestamptz, per_source integer, places integer) returns table (app_id uuid, changed boolean)
language plpgsql volatile security definer set search_path = public, pg_temp as $$
declare
    old oauth_apps;
    differs boolean;
begin
    perform pg_advisory_xact_lock(7591); -- that of register_app
    select * into old from oauth_apps a where a.document_url = url;
    if not found then
        perform register_app(new_id, new_name, new_uris, new_scopes, source, at, per_source, places);
        update oauth_apps a set document_url = url, document_fetched_at = at, document_fresh_until = fresh_until where a.id = new_id;
        return query select new_id, false;
    elsif old.deleted_at is null then
        differs := old.document_fetched_at <= at and (old.name, old.redirect_uris, old.scopes) is distinct from (new_name, new_uris, new_scopes);
        if old.document_fetched_at <= at then
            update oauth_apps a set name = new_name, redirect_uris = new_uris, scopes = new_scopes, version = a.version + differs::int,
                updated_at = case when differs then at else a.updated_at end, document_fetched_at = at, document_fresh_until = fresh_until
            where a.id = old.id;
        end if;
        return query select old.id, differs;
    end if;
end $$;
-- +goose StatementEnd

-- Separates the URL from the deleted app that had it, so that the next consent creates another app. Grants of the deleted app remain ended.
-- It returns false if there is no such app.
-- +goose StatementBegin
create function release_document(url text) returns boolean
language plpgsql volatile security definer set search_path = public, pg_temp as $$
begin
    update oauth_apps set document_url = null where document_url = url and deleted_at is not null;
    return found;
end $$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke all on function put_document_app(uuid, text, text, text[], text[], text, timestamptz, timestamptz, integer, integer), release_document(text) from public;
grant execute on function put_document_app(uuid, text, text, text[], text[], text, timestamptz, timestamptz, integer, integer), release_document(text) to "${APP_ROLE}";

-- +goose Down
drop function release_document(text), put_document_app(uuid, text, text, text[], text[], text, timestamptz, timestamptz, integer, integer);
drop index oauth_apps_document;
alter table oauth_apps drop column document_url, drop column document_fetched_at, drop column document_fresh_until;
