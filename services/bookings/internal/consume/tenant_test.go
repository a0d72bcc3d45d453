package consume_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/tenantstate"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

func tenantUpdated(t *testing.T, tenant ids.Tenant, version int64, clock string) kafkax.Message {
	t.Helper()
	m := message(t, caller.Caller{Tenant: tenant, Mode: caller.Live}, ids.Customer{}, "tenant.updated", version, `{"clock":`+clock+`}`)
	m.Topic = "identity"
	return m
}

// TestClockHealedByItsEvent checks that, if a process crashes after identity has moved the clock, the event delivers the new clock,
// and the worker processes what is due.
func TestClockHealedByItsEvent(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	bookings := &app.Bookings{DB: db.App, Wake: func() {}, Now: time.Now}
	expiry := &app.Expiry{Bookings: bookings, Worker: db.Worker}
	until := time.Now().Add(time.Hour)
	b := domain.Booking{
		ID: domain.NewBookingID(), Number: "B-1", Status: domain.Pending, Loc: time.UTC, Version: 1, HoldExpiresAt: &until,
		Schedule: domain.Schedule{Day: civil.Date{Year: 2030, Month: 1, Day: 1}}, Amounts: domain.NoMoney("USD"),
	}
	err := db.App.Tx(ctx, func(_ context.Context, tx pg.Tx) error {
		_, err := store.InsertBooking(tx, b, nil, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	status := func() domain.Status {
		t.Helper()
		if err := expiry.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := store.Booking(ctx, db.App.Read(ctx), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	if got := status(); got != domain.Pending {
		t.Errorf("before the event: %s", got)
	}
	h := consume.New(nil, nil, &testclock.Events{DB: db.App, Service: "bookings"}, &tenantstate.Events{DB: db.App, Service: "bookings"})
	if err := h.Handle(t.Context(), tenantUpdated(t, caller.FromContext(ctx).Tenant, 2, `"2090-01-01T00:00:00Z"`)); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != domain.Expired {
		t.Errorf("after the event: %s", got)
	}
}
