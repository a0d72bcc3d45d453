-- migrationlint:allow bulk-write: it precedes 1.0.0, so no released version runs during it
-- migrationlint:allow unreadable: it precedes 1.0.0, so no released version runs during it
-- +goose Up
-- What lost disputes have taken back of an intent, beyond its refunds.
alter table payment_intents add column lost bigint not null default 0;
update payment_intents p set lost = greatest(0, least(d.amount, p.received - p.refunded))
from (select tenant_id, livemode, intent_id, currency, sum(amount) as amount from disputes where status = 'lost' group by 1, 2, 3, 4) d
where (p.tenant_id, p.livemode, p.id, p.currency) = (d.tenant_id, d.livemode, d.intent_id, d.currency);

-- What was received and returned for each booking, and for each invoice without one, by card and otherwise, in each currency.
create table money_accounts (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id              uuid        not null,             -- of the booking or the invoice
    currency        text        not null,             -- of ISO 4217
    kind            text        not null check (kind in ('booking', 'invoice')),
    received        bigint      not null default 0,   -- in the smallest unit, whether or not it was returned
    returned        bigint      not null default 0,
    held            bigint      not null default 0,   -- of refunds that have begun and are not in returned
    unbacked        bigint      not null default 0,   -- what others returned, or banks took back, beyond what was left
    disputed        bigint      not null default 0,   -- number of card payments that a payer disputes
    version         bigint      not null default 0,
    emitted         bigint      not null default 0,   -- version of the last event
    primary key (tenant_id, livemode, id, currency),
    constraint money_accounts_sums check (received >= 0 and returned >= 0 and held >= 0 and unbacked >= 0 and disputed >= 0),
    constraint money_accounts_backed check (returned + held <= received + unbacked)
);
create index money_accounts_unpublished on money_accounts (tenant_id, livemode, id) where emitted < version;

-- What has changed the sums of an account. Append only: an error is reversed by another entry.
create table money_entries (
    tenant_id       uuid        not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode        boolean     not null default nullif(current_setting('app.livemode', true), '')::boolean,
    account_id      uuid        not null,
    currency        text        not null,
    version         bigint      not null,             -- of the account after the entry
    kind            text        not null check (kind in ('received', 'received_reversed', 'returned', 'returned_reversed',
                                                         'held', 'released', 'disputed', 'dispute_ended')),
    method          text        not null check (method in ('card', 'cash', 'bank_transfer', 'other')),
    amount          bigint      not null,             -- in the smallest unit; 0 of a dispute
    object          text collate "C" not null,        -- pi_…, pay_…, cn_… or rf_…
    invoice_id      uuid,                             -- that the payment names
    credit_note_id  uuid,                             -- that returned the money
    at              timestamptz not null,
    primary key (tenant_id, livemode, account_id, currency, version),
    constraint money_entries_amount check (case when kind in ('disputed', 'dispute_ended') then amount = 0 else amount > 0 end),
    foreign key (tenant_id, livemode, account_id, currency) references money_accounts
);
-- A payment or a return outside the gateway is recorded once, and reversed once.
create unique index money_entries_object on money_entries (tenant_id, livemode, object, kind) where method <> 'card';

select protect(t) from unnest(array['money_accounts', 'money_entries']::regclass[]) t;
select open_to_worker('money_accounts', 'select');

create trigger append_only before update or delete or truncate on money_entries
    for each statement execute function ledger_is_append_only();

-- move_money is the only writer of the sums. It locks the account, and adds an entry. A decision of this platform
-- must be backed by what was received. A fact, such as a refund in the gateway's dashboard or a lost dispute, is recorded even if it is not.
-- +goose ENVSUB OFF
-- +goose StatementBegin
create function move_money(
    of_tenant uuid, of_mode boolean, of_account uuid, of_kind text, of_currency text, entry text, entry_amount bigint, held_more bigint, fact boolean,
    entry_method text, entry_object text, entry_invoice uuid, entry_note uuid, entry_at timestamptz
) returns bigint language plpgsql as $$
declare
    received_more bigint := case entry when 'received' then entry_amount when 'received_reversed' then -entry_amount else 0 end;
    returned_more bigint := case entry when 'returned' then entry_amount when 'returned_reversed' then -entry_amount else 0 end;
    disputed_more bigint := case entry when 'disputed' then 1 when 'dispute_ended' then -1 else 0 end;
    moved bigint;
begin
    loop
        update money_accounts a set received = a.received + received_more, returned = a.returned + returned_more, held = a.held + held_more,
            disputed = a.disputed + disputed_more, version = a.version + 1,
            unbacked = case when fact
                then greatest(0, a.returned + returned_more + a.held + held_more - a.received - received_more) else a.unbacked end
        where a.tenant_id = of_tenant and a.livemode = of_mode and a.id = of_account and a.currency = of_currency
        returning a.version into moved;
        exit when found;
        insert into money_accounts (tenant_id, livemode, id, currency, kind) values (of_tenant, of_mode, of_account, of_currency, of_kind)
        on conflict do nothing;
    end loop;
    insert into money_entries (tenant_id, livemode, account_id, currency, version, kind, method, amount, object, invoice_id, credit_note_id, at)
    values (of_tenant, of_mode, of_account, of_currency, moved, entry, entry_method, entry_amount, entry_object, entry_invoice, entry_note, entry_at);
    return moved;
end $$;
-- +goose StatementEnd

-- move_card_money records how the money of an intent has changed. A refund in progress is held until the gateway's amount contains it. What
-- a lost dispute takes back is returned.
-- +goose StatementBegin
create function move_card_money(p payment_intents, was_received bigint, was_returned bigint, was_held bigint, was_disputed boolean, fact boolean)
returns void language plpgsql as $$
declare
    received_more bigint := p.received - was_received;
    returned_more bigint := p.refunded + p.lost - was_returned;
    held_more bigint := greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved) - p.refunded - was_held;
begin
    if received_more <> 0 then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when received_more > 0 then 'received' else 'received_reversed' end, abs(received_more), 0, true,
            'card', p.gateway_id, p.invoice_id, null, case when received_more > 0 then coalesce(p.succeeded_at, now()) else now() end);
    end if;
    if returned_more <> 0 or held_more <> 0 then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when returned_more > 0 then 'returned' when returned_more < 0 then 'returned_reversed' when held_more > 0 then 'held' else 'released' end,
            abs(case when returned_more <> 0 then returned_more else held_more end), held_more, fact,
            'card', p.gateway_id, p.invoice_id, null, now());
    end if;
    if p.disputed <> was_disputed then
        perform move_money(p.tenant_id, p.livemode, p.booking_id, 'booking', p.currency,
            case when p.disputed then 'disputed' else 'dispute_ended' end, 0, 0, true, 'card', p.gateway_id, p.invoice_id, null, now());
    end if;
end $$;
-- +goose StatementEnd

-- The account follows each write of an intent, of this version and of the version before. Only a refund that begins is a decision.
-- +goose StatementBegin
create function account_of_intent() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        perform move_card_money(new, 0, 0, 0, false, true);
    else
        perform move_card_money(new, old.received, old.refunded + old.lost,
            greatest(old.refunded, old.refunded_elsewhere + old.refund_reserved) - old.refunded, old.disputed,
            not (new.refund_reserved > old.refund_reserved and new.received = old.received and new.refunded = old.refunded));
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger money_inserted after insert on payment_intents for each row
    when (new.received <> 0 or new.refunded <> 0 or new.refund_reserved <> 0 or new.refunded_elsewhere <> 0 or new.disputed)
    execute function account_of_intent();
create trigger money_moved after update of received, refunded, refund_reserved, refunded_elsewhere, lost, disputed on payment_intents for each row
    when ((old.received, old.refunded, old.refund_reserved, old.refunded_elsewhere, old.lost, old.disputed)
        is distinct from (new.received, new.refunded, new.refund_reserved, new.refunded_elsewhere, new.lost, new.disputed))
    execute function account_of_intent();

-- The intents so far, in the order of their payments.
-- +goose StatementBegin
do $$
declare
    p payment_intents;
begin
    for p in select * from payment_intents i where i.received > 0 order by coalesce(i.succeeded_at, i.updated_at), i.id loop
        perform move_card_money(p, 0, 0, 0, false, true);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose ENVSUB ON
revoke update, delete, truncate on money_entries from "${APP_ROLE}";
revoke delete on money_accounts from "${APP_ROLE}";

-- +goose Down
drop trigger money_moved on payment_intents;
drop trigger money_inserted on payment_intents;
drop function account_of_intent, move_card_money, move_money;
drop table money_entries, money_accounts;
alter table payment_intents drop column lost;
