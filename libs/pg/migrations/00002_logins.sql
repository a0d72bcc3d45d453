-- +goose Up
-- A role can have several logins that are members of it, so that its password can be changed without an interruption.
-- oldest_write also counts their transactions. The owner must be a member of each login to see when they began.
-- +goose StatementBegin
create or replace function oldest_write() returns timestamptz language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    present timestamptz := clock_timestamp();
begin
    return least(present, (select min(xact_start) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
          and (backend_xid is not null or usename = public.app_role() or usesysid in (
              select m.member from pg_auth_members m join pg_roles app on app.oid = m.roleid join pg_roles login on login.oid = m.member
              where app.rolname = public.app_role() and login.rolname <> current_user))));
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function oldest_write() returns timestamptz language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    present timestamptz := clock_timestamp();
begin
    return least(present, (select min(xact_start) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
          and (backend_xid is not null or usename = public.app_role())));
end $$;
-- +goose StatementEnd
