-- +goose NO TRANSACTION
-- +goose Up
-- The record of an Idempotency-Key names the operation that was begun with it: while it has no answer, its resource_id is the uuid of
-- the payment intent or the refund, in hexadecimal digits. The columns credential_id, key and fingerprint of payment_intents and refunds
-- are read by the version before only. While both versions run, these triggers keep both: the next release drops them and the columns.

-- What the version before has begun is noted in the record.
-- +goose StatementBegin
create or replace function note_operation() returns trigger language plpgsql as $$
begin
    update idempotency_keys k set resource_id = replace(new.id::text, '-', '')
    where k.tenant_id = new.tenant_id and k.livemode = new.livemode and k.credential_id = new.credential_id and k.key = new.key
      and k.status is null and k.resource_id <> replace(new.id::text, '-', '');
    return null;
end $$;
-- +goose StatementEnd
create or replace trigger note_operation after insert or update of key, status, leased_until on payment_intents
    for each row when (new.key is not null and new.status = 'creating') execute function note_operation();
create or replace trigger note_operation after insert or update of key, status, leased_until on refunds
    for each row when (new.key is not null and new.status = 'creating') execute function note_operation();

-- The version before clears resource_id when it claims a key for the same request again. A claim lasts 24 hours: one that had expired
-- when it was taken over has no operation.
-- +goose StatementBegin
create or replace function keep_operation() returns trigger language plpgsql as $$
begin
    if new.fingerprint = old.fingerprint and old.expires_at > new.expires_at - interval '24 hours' then
        new.resource_id := old.resource_id;
    end if;
    return new;
end $$;
-- +goose StatementEnd
create or replace trigger keep_operation before update on idempotency_keys
    for each row when (old.status is null and new.status is null and old.resource_id <> '' and new.resource_id = '')
    execute function keep_operation();

-- What this version begins is noted in the columns of the version before, which an older row of the key gives up.
-- +goose StatementBegin
create or replace function note_key() returns trigger language plpgsql as $$
declare
    operation uuid := new.resource_id::uuid;
begin
    update payment_intents p set credential_id = null, key = null, fingerprint = null
    where p.tenant_id = new.tenant_id and p.livemode = new.livemode and p.credential_id = new.credential_id and p.key = new.key
      and p.id <> operation;
    update payment_intents p set credential_id = new.credential_id, key = new.key, fingerprint = new.fingerprint
    where p.tenant_id = new.tenant_id and p.livemode = new.livemode and p.id = operation and p.key is null;
    update refunds r set credential_id = null, key = null, fingerprint = null
    where r.tenant_id = new.tenant_id and r.livemode = new.livemode and r.credential_id = new.credential_id and r.key = new.key
      and r.id <> operation;
    update refunds r set credential_id = new.credential_id, key = new.key, fingerprint = new.fingerprint
    where r.tenant_id = new.tenant_id and r.livemode = new.livemode and r.id = operation and r.key is null;
    return null;
end $$;
-- +goose StatementEnd
create or replace trigger note_key after update of resource_id on idempotency_keys
    for each row when (new.status is null and new.resource_id <> '' and new.resource_id <> old.resource_id) execute function note_key();

-- The version before repeats the answer of a refund that has a key, and has none for a refused one.
-- +goose StatementBegin
create or replace function forget_key() returns trigger language plpgsql as $$
begin
    new.credential_id := null;
    new.key := null;
    new.fingerprint := null;
    return new;
end $$;
-- +goose StatementEnd
create or replace trigger forget_key before update of status on refunds
    for each row when (new.status = 'refused' and new.key is not null) execute function forget_key();

-- What was begun before this migration and has no answer yet.
insert into idempotency_keys as k (tenant_id, livemode, credential_id, key, fingerprint, expires_at, resource_id)
select p.tenant_id, p.livemode, p.credential_id, p.key, p.fingerprint,
    greatest(p.created_at, case when p.leased_until is not null then now() end) + interval '24 hours', replace(p.id::text, '-', '')
from payment_intents p
where p.key is not null and p.status <> 'refused' and (p.created_at > now() - interval '24 hours' or p.leased_until is not null)
on conflict (tenant_id, livemode, credential_id, key) do update set resource_id = excluded.resource_id, expires_at = excluded.expires_at
where k.status is null and k.fingerprint = excluded.fingerprint;
insert into idempotency_keys as k (tenant_id, livemode, credential_id, key, fingerprint, expires_at, resource_id)
select r.tenant_id, r.livemode, r.credential_id, r.key, r.fingerprint,
    greatest(r.created_at, case when r.leased_until is not null then now() end) + interval '24 hours', replace(r.id::text, '-', '')
from refunds r
where r.key is not null and r.status <> 'refused' and (r.created_at > now() - interval '24 hours' or r.leased_until is not null)
on conflict (tenant_id, livemode, credential_id, key) do update set resource_id = excluded.resource_id, expires_at = excluded.expires_at
where k.status is null and k.fingerprint = excluded.fingerprint;

-- +goose Down
drop trigger forget_key on refunds;
drop trigger note_key on idempotency_keys;
drop trigger keep_operation on idempotency_keys;
drop trigger note_operation on refunds;
drop trigger note_operation on payment_intents;
drop function forget_key, note_key, keep_operation, note_operation;
