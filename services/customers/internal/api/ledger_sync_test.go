package api_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/peers/peerstest"
)

// recordAgain runs the command ledger, and returns its output.
func (w *world) recordAgain() (string, error) {
	w.T.Helper()
	var out bytes.Buffer
	err := (&app.LedgerSync{Accounts: w.accounts, Worker: w.DB.Worker, Out: &out}).Run(w.T.Context())
	return out.String(), err
}

// TestLedgerOfAnEarlierVersion checks that the command records the payments and manual refunds that the ledger lacks, once, and that it
// lists what differs.
func TestLedgerOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	booked, alone := w.booked(ctx, 1000), w.open(ctx, 500)
	w.pay(ctx, booked, 600).is(200)
	reversed := w.pay(ctx, booked, 300).is(200).invoice().Payments[1].ID
	w.act(ctx, booked, "payments/"+reversed+"/reverse").is(200)
	w.pay(ctx, alone, 500).is(200)
	w.credit(ctx, alone, `{"amount":`+usd(200)+`,"refund":"manual"}`).is(201)
	w.Exec(`delete from money_accounts`) // as after the migration
	w.Exec(`update charges set version = 0`)
	*w.payments = peerstest.Payments{}
	for range 2 {
		if out, err := w.recordAgain(); err != nil || out != "" {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, c := range []struct {
			v                  invoice
			received, returned int64
		}{{booked, 600, 0}, {alone, 500, 200}} {
			if received, returned := w.payments.Sums(w.accountOf(c.v)); received != c.received || returned != c.returned {
				t.Errorf("the ledger has %d and %d", received, returned)
			}
		}
		w.has(ctx, booked, "partially_paid", 600, 0, 400)
		w.has(ctx, alone, "paid", 500, 200, 0)
	}
	w.Exec(`update charges set amount = amount + 1 where amount = 600`)
	if out, err := w.recordAgain(); !errors.Is(err, app.ErrLedgerDiffers) || strings.Count(out, "\n") != 1 || !strings.Contains(out, *booked.BookingID) {
		t.Errorf("%v\n%s", err, out)
	}
}
