-- +goose Up
create table catalogue_items (
    tenant_id uuid             not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean          not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        text collate "C" not null, -- srv_…, un_… or pkg_…
    version   bigint           not null,
    primary key (tenant_id, livemode, id)
);

select protect('catalogue_items');

-- +goose Down
drop table catalogue_items;
