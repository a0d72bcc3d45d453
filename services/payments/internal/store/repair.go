package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// The queries of the command repair. Package repair describes their columns.
const (
	// Copies is what this service holds of other services' objects, and its own accounts of money, with which customers compares its copies.
	Copies = `
		select 'bk', tenant_id, livemode, id::text, version, '', '' from bookings
		union all select 'ma', tenant_id, livemode, 'ma_' || id::text || ':' || currency, version, '', '' from money_accounts`
	// OwnIntents are the intents that the gateway knows. Other services hold their money as part of its account.
	OwnIntents = `
		select p.tenant_id, p.livemode, p.gateway_id as key, p.version, p.updated_at as changed_at, false as logged, '{}'::text[] as holders,
			case when p.succeeded_at >= @since and p.updated_at >= @since then '{payment.succeeded}' else '{}' end::text[] as events
		from payment_intents p where p.gateway_id is not null`
	// Unbooked are the payments of bookings that this service does not know, and that were not refunded in full.
	Unbooked = `
		select format('%s of tenant %s, booking %s', p.gateway_id, p.tenant_id, p.booking_id) from payment_intents p
		where p.received > p.refunded and not exists (select from bookings b where (b.tenant_id, b.livemode, b.id) = (p.tenant_id, p.livemode, p.booking_id))
		order by p.created_at`
	// OwnMoney are the accounts of money, at any time. Customers holds all of them, and bookings those of its bookings.
	OwnMoney = `
		select a.tenant_id, a.livemode, ('ma_' || a.id::text || ':' || a.currency) collate "C" as key, a.version, now() as changed_at, false as logged,
			case when b.id is null then '{customers}' else '{bookings,customers}' end::text[] as holders, '{}'::text[] as events
		from money_accounts a left join bookings b on (b.tenant_id, b.livemode, b.id) = (a.tenant_id, a.livemode, a.id)
		where a.version > 0`
	// UnbalancedMoney are the accounts whose sums differ from their entries or their card payments. There are none.
	UnbalancedMoney = `
		select format('account %s of tenant %s in %s', k.id, k.tenant_id, k.currency) from (
			select a.tenant_id, a.livemode, a.id, a.currency from money_accounts a
			union select p.tenant_id, p.livemode, p.booking_id, p.currency from payment_intents p
				where p.received > 0 or p.refunded > 0 or p.refund_reserved > 0 or p.disputed) k
		left join money_accounts a on (a.tenant_id, a.livemode, a.id, a.currency) = (k.tenant_id, k.livemode, k.id, k.currency)
		cross join lateral (
			select coalesce(sum(case e.kind when 'received' then e.amount when 'received_reversed' then -e.amount end), 0) as received,
				coalesce(sum(case e.kind when 'returned' then e.amount when 'returned_reversed' then -e.amount end), 0) as returned,
				coalesce(sum(case e.kind when 'received' then e.amount when 'received_reversed' then -e.amount end) filter (where e.method = 'card'), 0) as charged,
				coalesce(sum(case e.kind when 'returned' then e.amount when 'returned_reversed' then -e.amount end) filter (where e.method = 'card'), 0) as refunded,
				count(*) filter (where e.kind = 'disputed') - count(*) filter (where e.kind = 'dispute_ended') as disputed
			from money_entries e where (e.tenant_id, e.livemode, e.account_id, e.currency) = (k.tenant_id, k.livemode, k.id, k.currency)) e
		cross join lateral (
			select coalesce(sum(p.received), 0) as charged, coalesce(sum(p.refunded + p.lost), 0) as refunded, count(*) filter (where p.disputed) as disputed,
				coalesce(sum(greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved) - p.refunded), 0) as held
			from payment_intents p
			where (p.tenant_id, p.livemode, p.booking_id, p.currency) = (k.tenant_id, k.livemode, k.id, k.currency)) p
		where (a.received, a.returned, a.held, a.disputed, a.unbacked, e.charged, e.refunded, e.disputed) is distinct from
			(e.received, e.returned, p.held, p.disputed, greatest(0, a.returned + a.held - a.received), p.charged, p.refunded, p.disputed)`
	// CompareAccounts makes the reconciler compare each account with the gateway from the beginning, including everything that is open.
	CompareAccounts = `
		update gateway_reconciliations r set due_at = now(), tries = 0, stage = 'events', cursor = '', started_at = null, opened_at = null,
			events_until = null, events_seen = 0, events_missed = 0
		returning format('account %s of tenant %s', r.account_id, r.tenant_id)`
	// Comparing are the accounts whose comparison has not ended. A disconnected account counts until the comparison was tried once, because
	// the gateway usually refuses its keys.
	Comparing = `
		select format('account %s of tenant %s', r.account_id, r.tenant_id) from gateway_reconciliations r
		join gateway_accounts a on (a.tenant_id, a.livemode, a.id) = (r.tenant_id, r.livemode, r.account_id)
		where r.started_at is not null or r.opened_at is null and (a.disconnected_at is null or r.due_at <= now())`
)

// RaiseIntentVersion sets the version of an intent, unless it has that version already.
func RaiseIntentVersion(ctx context.Context, tx pg.Tx, id domain.GatewayID, version int64) error {
	return pg.Exec(ctx, tx, "raise version", `update payment_intents p set version = @version
		where p.tenant_id = @tenant and p.livemode = @live and p.gateway_id = @id and p.version < @version`, pg.Args{"id": id, "version": version})
}

// RaiseMoneyVersion sets the version of an account of money, unless it has that version already, and marks all its entries as unpublished.
// id is the key of OwnMoney. It returns the key of the account, or the zero value if there is none.
func RaiseMoneyVersion(ctx context.Context, tx pg.Tx, id string, version int64) (domain.MoneyKey, error) {
	account, currency, _ := strings.Cut(strings.TrimPrefix(id, "ma_"), ":")
	found, err := pg.Many(ctx, tx, pgx.RowToStructByPos[domain.MoneyKey], `
		update money_accounts a set version = greatest(a.version, @version), emitted = 0
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id::text::uuid and a.currency = @code
		returning case when a.kind = 'booking' then a.id end, case when a.kind = 'invoice' then a.id end, a.currency`,
		pg.Args{"id": account, "code": currency, "version": version})
	if err != nil || len(found) == 0 {
		return domain.MoneyKey{}, err
	}
	return found[0], nil
}

// ForgetBooking deletes the copy of a booking that the bookings service has lost. Its open intents become due to be canceled.
func ForgetBooking(ctx context.Context, tx pg.Tx, id domain.BookingID) error {
	_, err := tx.Exec(ctx, `
		insert into lost_bookings (tenant_id, livemode, booking_id, due_at)
		select p.tenant_id, p.livemode, p.booking_id, now() from payment_intents p
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @id and `+openIntents+` limit 1
		on conflict do nothing`, pg.Args{"id": id})
	if err == nil {
		_, err = tx.Exec(ctx, `delete from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{"id": id})
	}
	if err != nil {
		return fmt.Errorf("forget booking: %w", err)
	}
	return nil
}
