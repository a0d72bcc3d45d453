-- +goose Up
-- Objects whose person was erased: an event about one that comes in later, out of the dead letters, comes in erased.
create table erasures (
    tenant_id  uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode   boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    object_id  text        not null,
    expires_at timestamptz not null, -- older events than the log takes in then
    primary key (tenant_id, livemode, object_id)
);
create index erasures_expiry on erasures (expires_at);
select protect('erasures'), open_to_worker('erasures', 'select, update, delete');

-- +goose Down
drop table erasures;
