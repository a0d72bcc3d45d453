-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- When the first call of the request that an intent waits for began; null in rows of an earlier version: when its attempt began.
alter table payment_intents add column begun_at timestamptz;

-- The pairs of metadata, written with their rows: an index that SQL cannot declare.
create table payment_intent_metadata (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key             text collate "C" not null,
    value           text collate "C" not null,
    intent_id       uuid        not null,
    primary key (tenant_id, livemode, key, value, intent_id),
    foreign key (tenant_id, livemode, intent_id) references payment_intents
);
create index payment_intent_metadata_intent on payment_intent_metadata (tenant_id, livemode, intent_id);

create table refund_metadata (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    key             text collate "C" not null,
    value           text collate "C" not null,
    refund_id       uuid        not null,
    primary key (tenant_id, livemode, key, value, refund_id),
    foreign key (tenant_id, livemode, refund_id) references refunds
);
create index refund_metadata_refund on refund_metadata (tenant_id, livemode, refund_id);

-- The last of pairs with one key counts, as it does for the reader of JSON.
insert into payment_intent_metadata (tenant_id, livemode, key, value, intent_id)
select distinct on (p.tenant_id, p.livemode, p.id, m.key) p.tenant_id, p.livemode, m.key, m.value, p.id
from payment_intents p, json_each_text(case when json_typeof(p.metadata) = 'object' then p.metadata end) with ordinality m (key, value, n)
order by p.tenant_id, p.livemode, p.id, m.key, m.n desc;
insert into refund_metadata (tenant_id, livemode, key, value, refund_id)
select distinct on (r.tenant_id, r.livemode, r.id, m.key) r.tenant_id, r.livemode, m.key, m.value, r.id
from refunds r, json_each_text(case when json_typeof(r.metadata) = 'object' then r.metadata end) with ordinality m (key, value, n)
order by r.tenant_id, r.livemode, r.id, m.key, m.n desc;

select protect(t) from unnest(array['payment_intent_metadata', 'refund_metadata']::regclass[]) t;

-- +goose Down
drop table refund_metadata, payment_intent_metadata;
alter table payment_intents drop column begun_at;
