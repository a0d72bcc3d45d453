package store_test

import (
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// TestPlanOfACalendar checks that a calendar, planned as the app role under row-level security, reads the bookings of its days by
// index, even if it shows one unit among many.
func TestPlanOfACalendar(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	today := civil.Date{Year: 2100, Month: 1, Day: 1}
	var unit domain.UnitID
	if err := conn.QueryRow(t.Context(), `select unit_id from bookings where tenant_id = $1 and number = 'B-77'`, caller.FromContext(ctx).Tenant).Scan(&unit); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]store.CalendarRange{
		"of all": {From: today.AddDays(-90), Today: today, To: today.AddDays(400), Details: true},
		"of one unit": {
			From: civil.Date{Year: 2000, Month: 1, Day: 1}, Today: civil.Date{Year: 2030, Month: 3, Day: 3}, To: today, Unit: unit,
		},
	} {
		sql, args := store.CalendarSQL(r)
		plan := explain(t, db, ctx, sql, args).String()
		want := "bookings_day"
		if !r.Unit.IsZero() {
			want = "bookings_unit_day"
		}
		if strings.Contains(plan, "Seq Scan on bookings") || strings.Count(plan, want) != 2 {
			t.Errorf("%s does not read %s twice:\n%s", name, want, plan)
		}
	}
	began := time.Now()
	if _, err := store.FeedByHash(ctx, db.App.Read(ctx), make([]byte, 32)); err != domain.ErrFeedNotFound { //nolint:errorlint // the error itself
		t.Errorf("an unknown hash: %v after %s", err, time.Since(began))
	}
}
