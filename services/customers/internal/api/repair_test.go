package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/repair"

	"holdfast.dev/services/customers/internal/app"
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
