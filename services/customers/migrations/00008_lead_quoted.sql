-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow column-rewrite: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- The customer of the newest quote for a lead. What a lead that is nobody's yet says of a person is exported and erased with this
-- customer; no reader sees it. The table is written anew once: it holds few rows, as leads are new.
alter table leads
    add column quoted_customer_id uuid,
    add column person_id uuid generated always as (coalesce(customer_id, quoted_customer_id)) stored;
update leads l set quoted_customer_id = q.customer_id
from (select distinct on (tenant_id, livemode, lead_id) tenant_id, livemode, lead_id, customer_id from quotes where lead_id is not null
      order by tenant_id, livemode, lead_id, created_at desc) q
where q.tenant_id = l.tenant_id and q.livemode = l.livemode and q.lead_id = l.id;

-- +goose Down
alter table leads drop column person_id, drop column quoted_customer_id;
