package peers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

func balance(id string, amount, fee int64, currency string) string {
	return fmt.Sprintf(`{"id":%q,"object":"balance_transaction","amount":%d,"fee":%d,"currency":%q,"created":1700000000}`, id, amount, fee, currency)
}

// TestReadReturnsTheMovements checks that reads return everything that has moved money: the charge, its refunds and their failures,
// its disputes, and an earlier charge that a bank has reversed. If Stripe converts currencies, reads return both sides, each in its
// own unit. Each read covers one page: first back to the oldest refund, then on from there.
func TestReadReturnsTheMovements(t *testing.T) {
	t.Parallel()
	refund := func(id, balances string) string {
		return fmt.Sprintf(`{"id":%q,"object":"refund","amount":200000,"currency":"ugx","status":"failed",%s}`, id, balances)
	}
	page := func(more bool, rows string) string {
		return fmt.Sprintf(`200 {"object":"list","has_more":%t,"data":[%s]}`, more, rows)
	}
	charged :=
		`200 {"id":"pi_1","object":"payment_intent","status":"succeeded","amount":1000000,"amount_received":1000000,"currency":"ugx","latest_charge":
			{"id":"ch_2","object":"charge","status":"succeeded","amount":1000000,"amount_captured":1000000,"currency":"ugx","captured":true,"disputed":true,
			"balance_transaction":` + balance("txn_2", 270, 30, "usd") + `,"refunds":{"object":"list","has_more":true,"data":[]}}}`
	last := refund("re_2", `"balance_transaction":`+balance("txn_3", -54, 0, "usd"))
	s, got := gateway(t, charged, page(true, last),
		page(false, `{"id":"ch_2","object":"charge","status":"succeeded"},{"id":"ch_1","object":"charge","status":"failed","failure_code":"account_closed",
			"failure_message":"Closed.","outcome":{"reason":"account_closed"},"amount":1000000,"amount_captured":1000000,"currency":"ugx",
			"balance_transaction":`+balance("txn_0", 270, 0, "usd")+`,"failure_balance_transaction":`+balance("txn_1", -270, 0, "usd")+`}`),
		charged, page(false, refund("re_1", `"balance_transaction":`+balance("txn_4", -54, 0, "usd")+`,"failure_balance_transaction":`+balance("txn_5", 54, 0, "usd"))),
		charged, page(false, last),
		page(false, `{"id":"dp_1","object":"dispute","charge":"ch_2","amount":500000,"currency":"ugx","status":"under_review","reason":"fraudulent",
			"created":1700000000,"evidence_details":{"due_by":1700000001},"balance_transactions":[`+balance("txn_6", -135, 1500, "usd")+`]}`),
	)
	row, snapshot := domain.Intent{GatewayID: "pi_1"}, domain.Snapshot{More: true}
	all := map[string]domain.Movement{}
	var failed []domain.FailedCharge
	for snapshot.More {
		var err error
		if snapshot, err = s.Read(context.Background(), domain.Account{SecretKey: "sk_test_1"}, row); err != nil {
			t.Fatal(err)
		}
		for _, m := range snapshot.Movements {
			all[m.ID] = m
		}
		row, failed = row.ApplyRead(snapshot, 1, time.Now()), append(failed, snapshot.Failed...)
	}
	var moved []string
	for _, m := range all {
		moved = append(moved, fmt.Sprintf("%s %s %s %d-%d %s, %d %s", m.ID, m.Kind, m.Object, m.Amount, m.Fee, m.Currency, m.Paid, m.PaidCurrency))
		if !m.At.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%+v", m)
		}
	}
	slices.Sort(moved)
	want := []string{
		"txn_0 charge ch_1 270-0 USD, 10000 UGX", "txn_1 charge_failed ch_1 -270-0 USD, -10000 UGX", "txn_2 charge ch_2 270-30 USD, 10000 UGX",
		"txn_3 refund re_2 -54-0 USD, -2000 UGX", "txn_4 refund re_1 -54-0 USD, -2000 UGX", "txn_5 refund_failed re_1 54-0 USD, 2000 UGX",
		"txn_6 dispute dp_1 -135-1500 USD, -5000 UGX",
	}
	if !slices.Equal(moved, want) {
		t.Errorf("%q", moved)
	}
	if len(failed) != 1 || failed[0].ID != "ch_1" || failed[0].Failure != (domain.Failure{Code: "account_closed", Message: "Closed."}) {
		t.Errorf("%+v", failed)
	}
	if row.Charges != (domain.Walk{To: "ch_2"}) || row.Refunds != (domain.Walk{To: "re_2"}) {
		t.Errorf("read up to %+v and %+v", row.Charges, row.Refunds)
	}
	if d := snapshot.Disputes; len(d) != 1 || d[0].Amount.Minor != 5000 || d[0].Status != "under_review" || d[0].Charge != "ch_2" || d[0].DueBy == nil {
		t.Errorf("%+v", d)
	}
	if calls := *got; len(calls) != 8 || calls[4].form.Get("starting_after") != "re_2" || calls[6].form.Get("ending_before") != "re_1" {
		t.Errorf("%+v", calls)
	}
}

// TestReadFetchesOnlyWhatIsNew checks that known data costs no further call: the charges up to the latest one were read, and
// nothing is disputed.
func TestReadFetchesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	const response = `200 {"id":"pi_1","object":"payment_intent","status":"requires_payment_method","amount":1000,"currency":"usd",
		"last_payment_error":{"type":"card_error","code":"card_declined","charge":"ch_1","message":"No."},
		"latest_charge":{"id":"ch_1","object":"charge","status":"failed","currency":"usd"}}`
	s, got := gateway(t, response)
	snapshot, err := s.Read(context.Background(), domain.Account{}, domain.Intent{GatewayID: "pi_1", Charges: domain.Walk{To: "ch_1"}, FailedCharge: "ch_1"})
	if err != nil || len(*got) != 1 || snapshot.Charges != nil || snapshot.More || snapshot.DisputesRead || snapshot.FailedCharge != "ch_1" {
		t.Errorf("%d calls, %+v, %v", len(*got), snapshot, err)
	}
	expand := (*got)[0].form["expand[3]"]
	if len(expand) != 1 || expand[0] != "latest_charge.refunds.data.failure_balance_transaction" {
		t.Errorf("%v", (*got)[0].form)
	}
}

// TestFindPages checks that an intent is searched for page by page, each page with its own timeout, until it is found or the list
// ends.
func TestFindPages(t *testing.T) {
	t.Parallel()
	row := ids.New[domain.IntentPrefix]()
	other := `200 {"object":"list","has_more":%t,"data":[{"id":"pi_%d","object":"payment_intent","status":"canceled","currency":"usd","metadata":{}}]}`
	last := fmt.Sprintf(`200 {"object":"list","has_more":true,"data":[{"id":"pi_3","object":"payment_intent","status":"canceled","currency":"usd","metadata":{"holdfast_payment":%q}}]}`, row)
	for name, c := range map[string]struct {
		responses []string
		found     bool
	}{
		"on the third page": {[]string{fmt.Sprintf(other, true, 1), fmt.Sprintf(other, true, 2), last}, true},
		"on none":           {[]string{fmt.Sprintf(other, true, 1), fmt.Sprintf(other, false, 2)}, false},
	} {
		s, got := gateway(t, c.responses...)
		found, err := s.Find(context.Background(), domain.Account{SecretKey: "sk_test_1"}, row, time.Unix(1000, 0))
		if err != nil || (found != nil) != c.found || c.found && found.ID != "pi_3" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		var after []string
		for _, one := range *got {
			after = append(after, one.form.Get("starting_after"))
		}
		if want := []string{"", "pi_1", "pi_2"}[:len(c.responses)]; !slices.Equal(after, want) {
			t.Errorf("%s: pages behind %q", name, after)
		}
	}
}
