package api_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain/report"
)

// due reads the numbers of the bookings that need attention.
func (w *world) due(ctx context.Context) (holds, unpaid []string) {
	w.T.Helper()
	got := decode[internalapi.DueBookings](w.from(ctx, "console", "GET", "/due-bookings", "").is(200))
	for _, b := range got.Holds {
		holds = append(holds, b.Number)
	}
	for _, b := range got.Unpaid {
		unpaid = append(unpaid, b.Number)
	}
	return holds, unpaid
}

// TestDueBookings checks that holds that lapse within a day and unpaid deposits from today on are due, by the tenant's clock and
// calendar, regardless of later bookings.
func TestDueBookings(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx := operator(pgtest.CtxOf(t, tenant, caller.Test), "read:bookings", "write:bookings", "read:services")
	s, ann := w.shop(ctx), w.customer(ctx)
	now := time.Date(2030+shift, 5, 1, 2, 0, 0, 0, time.UTC) // the evening of April 30 in the operator's time zone
	ctx = w.freeze(ctx, now)
	hold := func(minutes int) string {
		return w.book(ctx, ahead(`"event_date":"2030-06-01","hold_minutes":%d`), minutes).Number
	}
	later, last, first := hold(24*60), hold(24*60-1), hold(1)
	w.book(ctx, ahead(`"event_date":"2030-06-01"`)) // has no expiration time
	deposit := func(day, more string) booking {
		return w.book(ctx, `"event_date":%q,"package_id":%q%s`, ahead(day), s.flat, more)
	}
	far, near := deposit("2030-08-01", ``), deposit("2030-04-30", fmt.Sprintf(`,"status":"confirmed","customer_id":%q`, ann))
	paid, cancelled := deposit("2030-07-01", ``), deposit("2030-07-02", ``)
	past := deposit("2030-04-29", ``)
	w.Exec(`update bookings set paid = deposit where number = $1`, paid.Number)
	w.do(ctx, "POST", "/bookings/"+cancelled.ID+"/cancel", "").is(200)
	holds, unpaid := w.due(ctx)
	if want := []string{first, last}; !slices.Equal(holds, want) {
		t.Errorf("holds %v, want %v and not %s", holds, want, later)
	}
	if want := []string{near.Number, far.Number}; !slices.Equal(unpaid, want) {
		t.Errorf("unpaid %v, want %v and not that of yesterday, %s", unpaid, want, past.Number)
	}
	w.Exec(`update bookings set paid = deposit - 1 where number = $1`, paid.Number)
	if _, unpaid := w.due(ctx); !slices.Equal(unpaid, []string{near.Number, paid.Number, far.Number}) {
		t.Errorf("a deposit of which a part is missing is due: %v", unpaid)
	}
	shown := decode[internalapi.DueBookings](w.from(ctx, "console", "GET", "/due-bookings", "").is(200)).Unpaid[0]
	want := internalapi.DueBooking{
		ID: near.ID, Number: near.Number, Status: "confirmed", CustomerID: new(ann), CustomerName: new("Ann Smith"), EventLocalDate: ahead("2030-04-30"), Currency: "USD", DepositAmount: 5000,
	}
	if !reflect.DeepEqual(shown, want) {
		t.Errorf("got %+v, want %+v", shown, want)
	}
	night := w.book(ctx, `"starts_at":%q,"ends_at":%q,"package_id":%q`, ahead("2030-04-29T22:00:00-04:00"), ahead("2030-04-30T02:00:00-04:00"), s.flat)
	w.book(ctx, `"starts_at":%q,"ends_at":%q,"package_id":%q`, ahead("2030-04-29T22:00:00-04:00"), ahead("2030-04-30T00:00:00-04:00"), s.flat)
	if _, unpaid := w.due(ctx); !slices.Equal(unpaid, []string{night.Number, near.Number, paid.Number, far.Number}) {
		t.Errorf("a booking that takes some of today is due: %v", unpaid)
	}
	w.do(ctx, "POST", "/bookings/"+night.ID+"/cancel", "").is(200)
	after := in(ctx, func(c *caller.Caller) { c.Clock = new(now.Add(2 * time.Minute)) })
	if holds, _ := w.due(after); !slices.Equal(holds, []string{last, later}) {
		t.Errorf("two minutes later: %v", holds)
	}
	for name, other := range map[string]context.Context{
		"live":           in(ctx, func(c *caller.Caller) { c.Mode = caller.Live }),
		"another tenant": in(ctx, func(c *caller.Caller) { c.Tenant = ids.New[ids.TenantPrefix]() }),
	} {
		if holds, unpaid := w.due(other); len(holds)+len(unpaid) > 0 {
			t.Errorf("%s: %v %v", name, holds, unpaid)
		}
	}
	w.from(operator(ctx, "write:bookings", "read:services"), "console", "GET", "/due-bookings", "").is(403, "insufficient_scope")
	w.from(ctx, "customers", "GET", "/due-bookings", "").is(401, "invalid_credential")
	for n := range report.MaxDue { // newer bookings with later holds do not hide the first ones
		w.book(ctx, ahead(`"event_date":"2030-09-01","hold_minutes":%d,"package_id":%q`), 100+n, s.flat)
	}
	holds, unpaid = w.due(ctx)
	if len(holds) != report.MaxDue || holds[0] != first || slices.Contains(holds, last) || len(unpaid) != report.MaxDue || unpaid[0] != near.Number || unpaid[2] != far.Number {
		t.Errorf("of many: %v, %v", holds, unpaid)
	}
}
