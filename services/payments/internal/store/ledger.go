package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

// PutMovements writes the entries of movements of an intent that the transaction has locked. Existing entries stay unchanged.
func PutMovements(ctx context.Context, tx pg.Tx, p domain.Intent, list []domain.Movement) error {
	var movements, accounts, currencies, kinds, objects []string
	var amounts []int64
	var times []time.Time
	for _, m := range list {
		for _, e := range m.Entries() {
			movements, accounts, currencies = append(movements, m.ID), append(accounts, string(e.Account)), append(currencies, e.Currency)
			kinds, objects = append(kinds, string(m.Kind)), append(objects, m.Object)
			amounts, times = append(amounts, e.Amount), append(times, m.At)
		}
	}
	if len(movements) == 0 {
		return nil
	}
	return pg.Exec(ctx, tx, fmt.Sprintf("write %d movements", len(list)), `
		insert into ledger_entries (tenant_id, livemode, account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at,
			money_version)
		select @tenant, @live, @account, e.movement, e.ledger_account, e.currency, e.amount, e.kind, e.object, @intent, e.moved_at,
			coalesce((`+moneyVersion+`), 0)
		from unnest(@movements::text[], @accounts::text[], @currencies::text[], @amounts::bigint[], @kinds::text[], @objects::text[],
			@times::timestamptz[]) e (movement, ledger_account, currency, amount, kind, object, moved_at)
		on conflict do nothing`, pg.Args{
		"account": p.AccountID, "intent": p.ID, "booking": p.BookingID, "currency": p.Amount.Currency, "movements": movements, "accounts": accounts, "currencies": currencies, "amounts": amounts,
		"kinds": kinds, "objects": objects, "times": times,
	})
}

// Entry is a row of the ledger.
type Entry struct {
	Movement string
	Account  domain.LedgerAccount
	Currency string
	Amount   int64
	Kind     domain.MovementKind
	Object   string
	IntentID domain.IntentID
	MovedAt  time.Time
}

// LedgerOfIntent reads up to limit entries of an intent, oldest movement first.
func LedgerOfIntent(ctx context.Context, q pg.Q, intent domain.IntentID, limit int) ([]Entry, error) {
	return pg.Many(ctx, q, pgx.RowToStructByPos[Entry], `
		select l.movement, l.ledger_account, l.currency, l.amount, l.kind, l.object, l.intent_id, l.moved_at from ledger_entries l
		where l.tenant_id = @tenant and l.livemode = @live and l.intent_id = @intent
		order by l.moved_at, l.movement, l.ledger_account, l.currency limit @limit`, pg.Args{"intent": intent, "limit": limit})
}

// Balance is the balance of an account of the ledger in a currency.
type Balance struct {
	Account  domain.LedgerAccount
	Currency string
	Amount   int64
}

// LedgerBalances adds up the ledger of a gateway account.
func LedgerBalances(ctx context.Context, q pg.Q, account domain.AccountID) ([]Balance, error) {
	return pg.Many(ctx, q, pgx.RowToStructByPos[Balance], `
		select l.ledger_account, l.currency, sum(l.amount)::bigint from ledger_entries l
		where l.tenant_id = @tenant and l.livemode = @live and l.account_id = @account
		group by l.ledger_account, l.currency order by l.ledger_account, l.currency`, pg.Args{"account": account})
}
