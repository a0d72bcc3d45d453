package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// accountState returns the columns of an account with the entries that changed after a version, so that one statement reads both as of
// the same instant. What was returned of a card payment includes refunds that have begun. since is an expression; null selects no entries.
func accountState(since string) string {
	return `a.received, a.returned, a.held, a.disputed > 0, a.version,
	case when ` + since + ` is null then '[]' else (select coalesce(json_agg(s order by s.version), '[]') from (
		select e.*, coalesce(p.returned, e.otherwise_returned) as returned, coalesce(p.note_returned, 0) as note_returned from (
			select e.object, min(e.method) as method, (array_agg(e.invoice_id order by e.version))[1] as invoice_id,
				(array_agg(e.credit_note_id order by e.version))[1] as credit_note_id, (array_agg(e.at order by e.version))[1] as at,
				coalesce(sum(e.amount) filter (where e.kind = 'received'), 0) as received,
				coalesce(sum(e.amount) filter (where e.kind = 'received_reversed'), 0) as received_reversed,
				coalesce(sum(e.amount) filter (where e.kind = 'returned'), 0) as otherwise_returned,
				count(*) filter (where e.kind = 'disputed') > count(*) filter (where e.kind = 'dispute_ended') as disputed,
				max(e.at) filter (where e.kind = 'received_reversed') as reversed_at, max(e.version) as version
			from money_entries e
			where e.tenant_id = a.tenant_id and e.livemode = a.livemode and e.account_id = a.id and e.currency = a.currency
				and e.tenant_id = @tenant and e.livemode = @live
			group by e.object having max(e.version) > ` + since + ` order by max(e.version) limit @limit) e
		left join lateral (
			select greatest(p.refunded, p.refunded_elsewhere + p.refund_reserved) + p.lost as returned, (
				select coalesce(sum(l.amount), 0) from refund_allocations l
				join refunds r on r.tenant_id = @tenant and r.livemode = @live and r.id = l.refund_id and r.credit_note_id is not null
				where l.tenant_id = @tenant and l.livemode = @live and l.intent_id = p.id
					and l.status in ('creating', 'pending', 'requires_action', 'succeeded')) as note_returned
			from payment_intents p
			where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = a.id and p.gateway_id = e.object) p on e.method = 'card') s) end`
}

// entryRow is an entry in the JSON of accountState.
type entryRow struct {
	Object           string             `json:"object"`
	Method           domain.EntryMethod `json:"method"`
	InvoiceID        *string            `json:"invoice_id"`     // a uuid
	CreditNoteID     *string            `json:"credit_note_id"` // a uuid
	At               time.Time          `json:"at"`
	Received         int64              `json:"received"`
	ReceivedReversed int64              `json:"received_reversed"`
	Returned         int64              `json:"returned"`
	NoteReturned     int64              `json:"note_returned"`
	Disputed         bool               `json:"disputed"`
	ReversedAt       *time.Time         `json:"reversed_at"`
	Version          int64              `json:"version"`
}

func (row entryRow) entry() (domain.MoneyEntry, error) {
	e := domain.MoneyEntry{
		Object: row.Object, Method: row.Method, Received: row.Received, Returned: row.Returned, NoteReturned: row.NoteReturned, Disputed: row.Disputed,
		At: row.At, Version: row.Version,
	}
	if e.Method == domain.MethodCard {
		e.Received -= row.ReceivedReversed
	} else {
		e.ReversedAt = row.ReversedAt
	}
	var err error
	if row.InvoiceID != nil {
		err = e.InvoiceID.Scan(*row.InvoiceID)
	}
	if row.CreditNoteID != nil {
		err = errors.Join(err, e.CreditNote.Scan(*row.CreditNoteID))
	}
	return e, err
}

// moneyArgs are the arguments of the statements about an account.
func moneyArgs(k domain.MoneyKey, since *int64) pg.Args {
	return pg.Args{"account": k.UUID(), "code": k.Currency, "since": since, "limit": domain.MaxMoneyEntries + 1}
}

func scanMoney(k domain.MoneyKey) pgx.RowToFunc[domain.MoneyAccount] {
	return func(row pgx.CollectableRow) (domain.MoneyAccount, error) {
		a := domain.MoneyAccount{MoneyKey: k}
		var raw []byte
		if err := row.Scan(&a.Received, &a.Returned, &a.Held, &a.Disputed, &a.Version, &raw); err != nil {
			return a, fmt.Errorf("scan account: %w", err)
		}
		var list []entryRow
		if err := json.Unmarshal(raw, &list); err != nil {
			return a, fmt.Errorf("entries of %s: %w", k, err)
		}
		if a.More = len(list) > domain.MaxMoneyEntries; a.More {
			list = list[:domain.MaxMoneyEntries]
		}
		for _, one := range list {
			e, err := one.entry()
			if err != nil {
				return a, fmt.Errorf("entry of %s: %w", k, err)
			}
			a.Entries = append(a.Entries, e)
		}
		return a, nil
	}
}

const thatAccount = `a.tenant_id = @tenant and a.livemode = @live and a.id = @account and a.currency = @code`

// MoneyAccount reads an account with the entries that changed after a version; nil: without entries. An account without money has
// only zeros.
func MoneyAccount(ctx context.Context, q pg.Q, k domain.MoneyKey, since *int64) (domain.MoneyAccount, error) {
	after := noEntries
	if since != nil {
		after = `@since::bigint`
	}
	found, err := pg.Many(ctx, q, scanMoney(k), `select `+accountState(after)+` from money_accounts a where `+thatAccount, moneyArgs(k, since))
	if err != nil || len(found) == 0 {
		return domain.MoneyAccount{MoneyKey: k}, err
	}
	return found[0], nil
}

// MoneyAccountForUpdate is MoneyAccount with a lock of the row until the transaction ends. It creates the row if there is none. A
// transaction that also locks intents, refunds or owed refunds locks them first.
func MoneyAccountForUpdate(ctx context.Context, tx pg.Tx, k domain.MoneyKey) (domain.MoneyAccount, error) {
	createMoney(tx, k)
	return pg.One(ctx, tx, scanMoney(k), pgx.ErrNoRows, moneyAccountForUpdate, moneyArgs(k, nil))
}

// createMoney creates the row of an account if there is none, with the next statement, before it.
func createMoney(tx pg.Tx, k domain.MoneyKey) {
	pg.Queue(tx, "create account", `insert into money_accounts (tenant_id, livemode, id, currency, kind) values (@tenant, @live, @account, @code, @kind)
		on conflict do nothing`, pg.Args{"account": k.UUID(), "code": k.Currency, "kind": k.Kind()})
}

// noEntries is a version after which the server plans no entries.
const noEntries = `null`

var moneyAccountForUpdate = `select ` + accountState(noEntries) + ` from money_accounts a where ` + thatAccount + ` for update`

// moneyVersion selects the version of the account of a booking.
const moneyVersion = `select m.version from money_accounts m
	where m.tenant_id = @tenant and m.livemode = @live and m.id = @booking and m.currency = @currency`

// MoneyToReturn returns the key of the account of a booking on which money is left, or domain.ErrNothingToRefund.
func MoneyToReturn(ctx context.Context, q pg.Q, booking domain.BookingID) (domain.MoneyKey, error) {
	code, err := pg.One(ctx, q, pgx.RowTo[string], domain.ErrNothingToRefund, `select a.currency from money_accounts a
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @id and a.received > a.returned + a.held
		order by a.received - a.returned - a.held desc limit 1`, pg.Args{"id": booking})
	return domain.BookingMoney(booking, code), err
}

// MoneyObjectForUpdate is MoneyAccountForUpdate, and also reads the entry of a payment or a return outside the gateway; nil: there is none.
func MoneyObjectForUpdate(ctx context.Context, tx pg.Tx, k domain.MoneyKey, object string) (a domain.MoneyAccount, e *domain.MoneyEntry, err error) {
	createMoney(tx, k)
	args := moneyArgs(k, nil)
	args["object"] = object
	var account *domain.MoneyAccount // never nil, because it was created
	b := &pgx.Batch{}
	b.Queue(moneyAccountForUpdate, args).Query(pg.FirstInto(&account, scanMoney(k)))
	b.Queue(`
		select e.object, e.method, case when e.kind = 'received' then e.amount else 0 end, e.invoice_id, (
			select r.at from money_entries r where r.tenant_id = @tenant and r.livemode = @live and r.object = e.object and r.method <> 'card'
				and r.kind = 'received_reversed')
		from money_entries e where e.tenant_id = @tenant and e.livemode = @live and e.object = @object and e.method <> 'card'
			and e.kind in ('received', 'returned') and e.account_id = @account and e.currency = @code`, args,
	).Query(pg.FirstInto(&e, func(row pgx.CollectableRow) (e domain.MoneyEntry, err error) {
		err = row.Scan(&e.Object, &e.Method, &e.Received, &e.InvoiceID, &e.ReversedAt)
		return e, err
	}))
	if err := pg.Send(ctx, tx, b, "lock account"); err != nil {
		return a, nil, err
	}
	return *account, e, nil
}

// LastReturn returns the public id of the newest return of an account: the refund or the credit note, or the card payment that others
// refunded. It returns "" if there is none.
func LastReturn(ctx context.Context, q pg.Q, k domain.MoneyKey) (string, error) {
	type found struct {
		Object string
		Refund domain.RefundID
	}
	last, err := pg.Many(ctx, q, pgx.RowToStructByPos[found], `
		select l.object, l.refund from (
			(select e.object, null::uuid, e.at from money_entries e
			where e.tenant_id = @tenant and e.livemode = @live and e.account_id = @account and e.currency = @code and e.kind = 'returned'
			order by e.version desc limit 1)
			union all
			(select '', r.id, r.created_at from refunds r
			where r.tenant_id = @tenant and r.livemode = @live and r.booking_id = @account and r.currency = @code and r.shown
				and r.status in ('pending', 'requires_action', 'succeeded')
			order by r.created_at desc, r.id desc limit 1)) l (object, refund, at)
		order by l.refund is null, l.at desc limit 1`, pg.Args{"account": k.UUID(), "code": k.Currency})
	if err != nil || len(last) == 0 {
		return "", err
	}
	if !last[0].Refund.IsZero() {
		return last[0].Refund.String(), nil
	}
	return last[0].Object, nil
}

// MoveMoney changes an account and adds the entry, with the next statement, before it. That statement returns domain.ErrUnbacked if the
// constraint of the accounts prevents the change.
func MoveMoney(tx pg.Tx, k domain.MoneyKey, m domain.MoneyMove) {
	b := &pgx.Batch{}
	b.Queue(`select move_money(@tenant, @live, @account, @kind, @code, @entry, @minor, 0, @fact, @method, @object, @invoice, @note, @at)`,
		pg.Args{
			"account": k.UUID(), "kind": k.Kind(), "code": k.Currency, "entry": m.Kind, "minor": m.Minor, "fact": m.Kind == domain.EntryReceived,
			"method": m.Method, "object": m.Object, "invoice": m.Invoice, "note": m.CreditNote, "at": m.At,
		})
	tx.Guard(b, func(res pgx.BatchResults) error {
		if _, err := res.Exec(); err != nil {
			return backed(fmt.Errorf("move money of %s: %w", k, err))
		}
		return nil
	})
}

// backed returns domain.ErrUnbacked if the constraint of the accounts has prevented a write.
func backed(err error) error {
	if pg.ConstraintName(err) == "money_accounts_backed" {
		return domain.ErrUnbacked
	}
	return err
}

// UnpublishedMoney reads an account that has changed since its last event, with the changes, and marks it as published. ok is false if
// it has not changed.
func UnpublishedMoney(ctx context.Context, tx pg.Tx, k domain.MoneyKey) (a domain.MoneyAccount, ok bool, err error) {
	found, err := pg.Many(ctx, tx, scanMoney(k), `
		update money_accounts a set emitted = a.version
		from (select a.emitted from money_accounts a where `+thatAccount+` for update) was
		where `+thatAccount+` and a.emitted < a.version returning `+accountState(`was.emitted`), moneyArgs(k, nil))
	if err != nil || len(found) == 0 {
		return domain.MoneyAccount{}, false, err
	}
	return found[0], true, nil
}
