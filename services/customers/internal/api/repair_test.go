package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/repair"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/peers/peerstest"
)

// repair runs the command with these copies.
func (w *world) repair(ctx context.Context, check bool, copies ...repair.Copy) error {
	w.T.Helper()
	var in bytes.Buffer
	c := caller.FromContext(ctx)
	for _, one := range copies {
		one.Tenant, one.Livemode = c.Tenant, c.Live()
		if err := json.NewEncoder(&in).Encode(one); err != nil {
			w.T.Fatal(err)
		}
	}
	return app.Repair().Do(w.T.Context(), repair.Run{
		URL: w.DB.OwnerURL, Since: time.Now().Add(-time.Hour), Check: check, In: &in, Out: &bytes.Buffer{}, Progress: &bytes.Buffer{},
	})
}

// TestRepairOfCustomers checks that, after a restore, a customer of which another service has a newer state, also an erased one, gets a
// higher version and an event, that missing events are published, and that no number in the event log is assigned again.
func TestRepairOfCustomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	c, erased := w.create(ctx, ""), w.create(ctx, "")
	w.do(ctx, "DELETE", "/customers/"+erased.ID, "").is(204)
	v := w.act(ctx, w.open(ctx, 1000), "record-payment", `{"amount":`+usd(1000)+`,"method":"cash"}`).is(200).invoice()
	held := []repair.Copy{
		{Holder: "bookings", ID: c.ID, Version: 5},
		{Holder: "bookings", ID: erased.ID, Version: 9},
		{Holder: "webhooks", ID: v.ID, Version: 1, Event: "invoice.created", Number: "INV-000077"},
	}
	if err := w.repair(ctx, true, held...); !errors.Is(err, repair.ErrDiffers) {
		t.Errorf("check: %v", err)
	}
	before := len(w.Events())
	if err := w.repair(ctx, false, held...); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, e := range w.Events()[before:] {
		got[e.GetType()+" "+e.GetObjectId()] = e.GetResourceVersion()
	}
	for event, version := range map[string]int64{
		"customer.created " + c.ID: 6, "customer.erased " + erased.ID: 10, "invoice.paid " + v.ID: v.Version,
	} {
		if got[event] != version {
			t.Errorf("%s: version %d, want %d; %v", event, got[event], version, got)
		}
	}
	if now := w.do(ctx, "GET", "/customers/"+c.ID, "").is(200).customer(); now.Version != 6 {
		t.Errorf("%+v", now)
	}
	if next := w.open(ctx, 1000); *next.Number != "INV-000078" {
		t.Errorf("the next number is %s", *next.Number)
	}
}

// accountCopies returns the copies of the accounts of money.
func (w *world) accountCopies() (list []repair.Copy) {
	w.T.Helper()
	var out bytes.Buffer
	if err := repair.WriteCopies(w.T.Context(), w.DB.OwnerURL, "customers", app.Repair().Copies, time.Now(), &out); err != nil {
		w.T.Fatal(err)
	}
	for lines := json.NewDecoder(&out); lines.More(); {
		var c repair.Copy
		if err := lines.Decode(&c); err != nil {
			w.T.Fatal(err)
		}
		if strings.HasPrefix(c.ID, "ma_") {
			list = append(list, c)
		}
	}
	return list
}

// TestRepairOfAccounts checks that an account of which payments has lost changes is applied again from the beginning after a repair, also
// that of an invoice without a booking. Payments that payments has lost are recorded again by `ledger`, and nothing counts twice.
func TestRepairOfAccounts(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), payer(t)
	booked, alone, refunded := w.booked(ctx, 1000), w.open(ctx, 1000), w.booked(ctx, 1000)
	for _, v := range []invoice{booked, alone} {
		w.pay(ctx, v, 300).is(200)
		w.pay(ctx, v, 200).is(200)
	}
	*w.payments = peerstest.Payments{} // restored
	w.card(booked, "pi_1", 100, 0)
	w.card(refunded, "pi_2", 1300, 0)
	w.payments.HandBack(w.accountOf(refunded), "rf_1", 1100)
	w.deliver(ctx, w.accountOf(refunded))
	const free = `select coalesce(sum(returned_free), 0) from money_accounts`
	before := w.Count(free)
	held := w.accountCopies()
	if len(held) != 3 {
		t.Fatalf("copies %+v", held)
	}
	for _, v := range []invoice{booked, refunded} {
		_, key := ids.Stored(*v.BookingID)
		held = append(held, repair.Copy{Holder: "payments", ID: "ma_" + key + ":USD", Version: 1})
	}
	if err := w.repair(ctx, true, held...); !errors.Is(err, repair.ErrDiffers) {
		t.Errorf("check: %v", err)
	}
	if err := w.repair(ctx, false, held...); err != nil {
		t.Fatal(err)
	}
	if left := w.accountCopies(); len(left) != 0 {
		t.Errorf("copies %+v", left)
	}
	w.pay(ctx, booked, 10).is(200)
	w.pay(ctx, alone, 10).is(200)
	w.has(ctx, booked, "partially_paid", 610, 0, 390)
	w.has(ctx, alone, "partially_paid", 510, 0, 490)
	if out, err := w.recordAgain(); err != nil || out != "" {
		t.Fatalf("%v\n%s", err, out)
	}
	for v, want := range map[*invoice]int64{&booked: 610, &alone: 510} {
		if received, _ := w.payments.Sums(w.accountOf(*v)); received != want {
			t.Errorf("the ledger has received %d, want %d", received, want)
		}
	}
	if err := w.accounts.Refresh(ctx, w.accountOf(refunded)); err != nil {
		t.Fatal(err)
	}
	if after := w.Count(free); before == 0 || after != before {
		t.Errorf("%d was handed back of money on no invoice, and %d after the repair", before, after)
	}
}

// TestRepairSkipsNumbers checks that documents that are created after `repair numbers` have no number that it skipped, also in a mode
// without a document, and that the counters of kinds that were not named stay.
func TestRepairSkipsNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	first := w.open(ctx, 1000)
	skip := func(kinds ...string) {
		t.Helper()
		if err := app.Repair().SkipNumbers(t.Context(), repair.Run{URL: w.DB.OwnerURL, Out: &bytes.Buffer{}, Progress: &bytes.Buffer{}}, 1000, kinds); err != nil {
			t.Fatal(err)
		}
	}
	skip("quotes", "credit_notes")
	if next := w.open(ctx, 1000); *first.Number != "INV-000001" || *next.Number != "INV-000002" {
		t.Errorf("%s, then %s", *first.Number, *next.Number)
	}
	skip()
	if next := w.open(ctx, 1000); *next.Number != "INV-001003" {
		t.Errorf("the next number is %s", *next.Number)
	}
	if q := w.sentQuote(ctx, ""); q.Number != "Q-002001" {
		t.Errorf("the quote's number is %s", q.Number)
	}
}

// TestRepairResumesAccepts checks that the accept of a sent quote is completed if its booking exists, with the existing booking.
func TestRepairResumesAccepts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	q, other := w.sentQuote(ctx, ""), w.sentQuote(ctx, "")
	if err := w.repair(ctx, false, repair.Copy{Holder: "bookings", ID: q.ID, Event: "booked"}); err != nil {
		t.Fatal(err)
	}
	w.resumeAccepts(time.Second)
	if got := w.readQuote(ctx, q.ID); got.Status != "accepted" {
		t.Errorf("%+v", got)
	}
	if got := w.readQuote(ctx, other.ID); got.Status != "sent" {
		t.Errorf("%+v", got)
	}
}
