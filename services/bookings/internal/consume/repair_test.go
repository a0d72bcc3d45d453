package consume_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/repair"

	"holdfast.dev/services/bookings/internal/app"
)

// repair runs the command with these copies, and returns the lost objects.
func (w *till) repair(check bool, copies ...repair.Copy) (lost string, err error) {
	w.T.Helper()
	var in, out, progress bytes.Buffer
	c := caller.FromContext(w.ctx)
	for _, one := range copies {
		one.Tenant, one.Livemode = c.Tenant, c.Live()
		if err := json.NewEncoder(&in).Encode(one); err != nil {
			w.T.Fatal(err)
		}
	}
	err = app.Repair().Do(w.T.Context(), repair.Run{
		URL: w.DB.OwnerURL, Since: time.Now().Add(-time.Hour), Check: check, In: &in, Out: &out, Progress: &progress,
	})
	return out.String(), err
}

// TestRepairOfBookings checks that a booking of which another service has a newer state gets a higher version and an event, that numbers
// in the event log are not assigned again, and that the copies of lost objects are forgotten: a lost invoice's credit notes no longer count.
func TestRepairOfBookings(t *testing.T) {
	t.Parallel()
	w := newTill(t, caller.Test)
	id := w.book()
	v := w.bill(id)
	v.open(100)
	v.credited = 100
	w.handle(w.event(v))
	w.is(id, "pending", 0, "unpaid", 2)
	created := repair.Copy{Holder: "webhooks", ID: id.String(), Version: 1, Event: "booking.created", Number: "B-000900"}
	held := []repair.Copy{
		created,
		{Holder: "customers", ID: id.String(), Version: 7},
		{Holder: "payments", ID: id.String(), Version: 1},
		{Holder: "customers", ID: newID("bk"), Version: 1},
	}
	if _, err := w.repair(true, held...); !errors.Is(err, repair.ErrDiffers) {
		t.Errorf("check: %v", err)
	}
	w.is(id, "pending", 0, "unpaid", 2)
	lost, err := w.repair(false, held...)
	if err != nil || strings.Count(lost, "\n") != 1 || !strings.Contains(lost, held[3].ID) {
		t.Errorf("%v, lost %s", err, lost)
	}
	w.is(id, "pending", 0, "unpaid", 8)
	events := w.Events()
	if e := events[len(events)-1]; e.GetType() != "booking.updated" || e.GetResourceVersion() != 8 || e.GetActor() != "svc:bookings" {
		t.Errorf("%v", e)
	}
	if next := w.Count(`select next from booking_counters`); next != 901 {
		t.Errorf("the next number is %d, want 901", next)
	}
	if err := app.Repair().SkipNumbers(t.Context(), repair.Run{URL: w.DB.OwnerURL, Out: &bytes.Buffer{}, Progress: &bytes.Buffer{}}, 99, nil); err != nil {
		t.Fatal(err)
	}
	if next := w.Count(`select next from booking_counters`); next != 1000 {
		t.Errorf("the next number is %d, want 1000", next)
	}
	if _, err := w.repair(true, created, repair.Copy{Holder: "webhooks", ID: id.String(), Version: 8, Event: "booking.updated"},
		repair.Copy{Holder: "customers", ID: id.String(), Version: 8}, repair.Copy{Holder: "payments", ID: id.String(), Version: 8}); err != nil {
		t.Errorf("the copies are equal: %v", err)
	}

	c := caller.FromContext(w.ctx)
	gone, err := json.Marshal(repair.Lost{Tenant: c.Tenant, Livemode: c.Live(), ID: v.id, Holders: []string{"bookings"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := app.Repair().ForgetLost(t.Context(), repair.Run{URL: w.DB.OwnerURL, In: bytes.NewReader(gone), Progress: &bytes.Buffer{}}); err != nil {
			t.Fatal(err)
		}
	}
	w.is(id, "pending", 0, "unpaid", 9)
	if b := w.get(id); b.AmountDue.Amount != 1000 || b.AmountCredited.Amount != 0 {
		t.Errorf("due %d, credited %d", b.AmountDue.Amount, b.AmountCredited.Amount)
	}
	var copies bytes.Buffer
	if err := repair.WriteCopies(t.Context(), w.DB.OwnerURL, "bookings", app.Repair().Copies, time.Now(), &copies); err != nil || copies.Len() > 0 {
		t.Errorf("%v, copies %s", err, copies.String())
	}
}
