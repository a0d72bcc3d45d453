-- +goose ENVSUB ON
-- +goose Up
-- Exempt from livemode: an operator's own views of the console's lists serve both modes.
create table saved_views (
    tenant_id   uuid        not null references tenants (tenant_id),
    operator_id uuid        not null references operators (id),
    id          uuid        not null,
    list        text        not null,
    name        text        not null,
    query       text        not null, -- of the console's address
    created_at  timestamptz not null,
    primary key (tenant_id, operator_id, list, name)
);
alter table saved_views enable row level security;
alter table saved_views force row level security;
create policy tenant on saved_views to "${APP_ROLE}"
    using (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
grant select, insert, update, delete on saved_views to "${APP_ROLE}";

-- +goose Down
drop table saved_views;
