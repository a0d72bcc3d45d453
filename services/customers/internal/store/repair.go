package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// The queries of the command repair. Package repair describes their columns.
const (
	// Copies is what this service holds of other services' objects. It does not know the version of a payment intent. An
	// account of money has the key of payments. One of version 0 must be applied again.
	Copies = `
		select 'bk', tenant_id, livemode, id::text, version, '', '' from bookings
		union all select 'pi', tenant_id, livemode, id, 0, '', '' from charges where method = 'card'
		union all select 'ma', tenant_id, livemode, 'ma_' || id::text || ':' || currency, version, '', '' from money_accounts where version > 0
		union all select split_part(id, '_', 1), tenant_id, livemode, id, version, '', '' from catalogue_items`
	OwnCustomers = `
		select tenant_id, livemode, id::text as key, version, updated_at as changed_at, erased_at is null as logged, '{bookings}'::text[] as holders,
			case when id >= @first and erased_at is null then '{customer.created}' else '{}' end::text[] as events
		from customers`
	OwnLeads = `
		select l.tenant_id, l.livemode, l.id::text as key, l.version, l.updated_at as changed_at, not exists (select from customers c
				where (c.tenant_id, c.livemode, c.id) = (l.tenant_id, l.livemode, l.customer_id) and c.erased_at is not null) as logged,
			'{}'::text[] as holders, case when l.id >= @first then '{lead.created}' else '{}' end::text[] as events
		from leads l`
	OwnQuotes = `
		select tenant_id, livemode, id::text as key, version, updated_at as changed_at, false as logged, '{}'::text[] as holders, array_remove(array[
			case when id >= @first then 'quote.created' end,
			case when accepted_at >= @since and updated_at >= @since then 'quote.accepted' end], null) as events
		from quotes`
	// OwnInvoices and OwnCreditNotes are held by bookings if it has the booking.
	OwnInvoices = `
		select v.tenant_id, v.livemode, v.id::text as key, v.version, v.updated_at as changed_at, false as logged,
			case when v.booking_id is null or b.id is not null then '{bookings}' else '{}' end::text[] as holders, array_remove(array[
				case when v.id >= @first then 'invoice.created' end,
				case when v.status = 'paid' and v.paid_at >= @since and v.updated_at >= @since then 'invoice.paid' end], null) as events
		from invoices v left join bookings b on (b.tenant_id, b.livemode, b.id) = (v.tenant_id, v.livemode, v.booking_id)`
	//nolint:gosec // a statement, not a credential
	OwnCreditNotes = `
		select n.tenant_id, n.livemode, n.id::text as key, n.version, n.updated_at as changed_at, false as logged,
			case when n.refund = 'manual' and n.returned > 0 and b.id is not null then '{bookings}' else '{}' end::text[] as holders,
			'{}'::text[] as events
		from credit_notes n left join bookings b on (b.tenant_id, b.livemode, b.id) = (n.tenant_id, n.livemode, n.booking_id)`
	// RaiseQuoteNumbers and RaiseInvoiceNumbers make the next number higher than each number in a copy.
	RaiseQuoteNumbers   = raise + `quote_counters` + above + `'qt'` + returning
	RaiseInvoiceNumbers = raise + `invoice_counters` + above + `'inv'` + returning

	raise = `insert into `
	above = ` as c (tenant_id, livemode, next)
		select tenant_id, livemode, max(substring(number from '[0-9]+$')::bigint) + 1 from repair_copies
		where number ~ '[0-9]+$' and prefix = `
	returning = ` group by 1, 2
		on conflict (tenant_id, livemode) do update set next = excluded.next where c.next < excluded.next
		returning format('tenant %s, livemode %s: the next is %s', tenant_id, livemode, next)`

	// ResetMoney makes accounts of which payments has lost changes be applied again from the beginning. Payments of clients on them count as
	// unrecorded, so that the command ledger records them again.
	ResetMoney = `
		with lost as (
			select h.tenant_id, h.livemode, h.key from repair_copies h
			left join repair_copies p on p.holder = 'payments' and (p.prefix, p.tenant_id, p.livemode, p.key) = (h.prefix, h.tenant_id, h.livemode, h.key)
			where h.holder = 'customers' and h.prefix = 'ma' and h.version > coalesce(p.version, 0)),
		reset as (
			update money_accounts a set version = 0 from lost l
			where (a.tenant_id, a.livemode, 'ma_' || a.id::text || ':' || a.currency) = (l.tenant_id, l.livemode, l.key) and a.version > 0
			returning a.tenant_id, a.livemode, a.id, a.currency),
		unrecorded as (
			update charges c set version = 0 from reset r
			where (c.tenant_id, c.livemode, c.booking_id, c.currency) = (r.tenant_id, r.livemode, r.id, r.currency) and c.method <> 'card')
		select format('account %s of tenant %s in %s', id, tenant_id, currency) from reset`

	// ResumeAccepts hands sent quotes that have a booking to the completer of accepts. Bookings returns the existing booking.
	ResumeAccepts = `
		update quotes q set accept_attempt = q.accept_attempt + 1, accept_since = now(), accept_until = now(), accept_next = now(),
			accept_request = '', accept_actor = 'svc:customers'
		from repair_copies c where c.prefix = 'qt' and c.event = 'booked' and q.tenant_id = c.tenant_id and q.livemode = c.livemode
			and q.id = c.key::uuid and q.status = 'sent' and q.accept_until is null
		returning format('quote %s of tenant %s', q.id, q.tenant_id)`
)

// RaiseVersion sets the version of a row of a table with versions, unless the row has that version already. It reports whether the row
// exists.
func RaiseVersion(ctx context.Context, tx pg.Tx, table, key string, version int64) (bool, error) {
	n, err := pg.Affect(ctx, tx, "raise version", `update `+table+` set version = greatest(version, @version)
		where tenant_id = @tenant and livemode = @live and id = @key::uuid`, pg.Args{"key": key, "version": version})
	return n > 0, err
}

// ErasedVersion returns the version of an erased customer, or 0 if the customer is not erased.
func ErasedVersion(ctx context.Context, q pg.Q, id domain.CustomerID) (int64, error) {
	found, err := pg.Many(ctx, q, func(row pgx.CollectableRow) (v int64, err error) { return v, row.Scan(&v) }, `
		select c.version from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.erased_at is not null`, pg.Args{"id": id})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// ForgetCopy deletes the copy of a booking, or of an item of the catalogue, that the bookings service has lost.
func ForgetCopy(ctx context.Context, tx pg.Tx, table, key string) error {
	return pg.Exec(ctx, tx, "forget copy", `delete from `+table+` where tenant_id = @tenant and livemode = @live and id::text = @key`, pg.Args{"key": key})
}
