package consume_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

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

// The clock comes with the tenant's events, holds for test mode alone, and never goes back to an older state.
func TestClockProjection(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations.FS), ids.New[ids.TenantPrefix]()
	h := consume.Handlers{"identity": (&consume.Tenants{App: &app.Clocks{DB: db.App}}).Handle}
	handle := func(m kafkax.Message) {
		t.Helper()
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	known := func(tenant ids.Tenant, mode caller.Mode) string {
		t.Helper()
		ctx := pgtest.CtxOf(t, tenant, mode)
		c, err := row[domain.TestClock](ctx, db, `select frozen_at, version from test_clocks`)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		if c.FrozenAt == nil {
			return fmt.Sprint("real ", c.Version)
		}
		return fmt.Sprint(c.FrozenAt.UTC().Format(time.RFC3339), " ", c.Version)
	}
	expect := func(want string) {
		t.Helper()
		if got := known(tenant, caller.Test); got != want {
			t.Errorf("known: %s, want %s", got, want)
		}
	}
	expect("real 0")
	second := tenantUpdated(t, tenant, 2, `"2030-01-01T00:00:00Z"`)
	handle(second)
	handle(second)
	expect("2030-01-01T00:00:00Z 2")
	handle(tenantUpdated(t, tenant, 5, `null`))
	handle(tenantUpdated(t, tenant, 4, `"2031-01-01T00:00:00Z"`)) // late
	expect("real 5")
	handle(tenantUpdated(t, tenant, 6, `"2032-01-01T00:00:00+02:00"`))
	expect("2031-12-31T22:00:00Z 6")
	future := message(t, caller.Caller{Tenant: tenant, Mode: caller.Live}, ids.Customer{}, "tenant.merged", 7, `{}`)
	future.Topic = "identity"
	handle(future)
	expect("2031-12-31T22:00:00Z 6")
	if live, other := known(tenant, caller.Live), known(ids.New[ids.TenantPrefix](), caller.Test); live != "real 0" || other != "real 0" {
		t.Errorf("live mode knows %s, another tenant %s", live, other)
	}
	for name, m := range map[string]kafkax.Message{
		"no JSON": tenantUpdated(t, tenant, 8, `{`), "no time": tenantUpdated(t, tenant, 8, `"x"`),
		"no tenant": tenantUpdated(t, ids.Tenant{}, 8, `null`), "no such topic": {Topic: "quotes"},
	} {
		if err := h.Handle(t.Context(), m); !errors.Is(err, kafkax.ErrPoison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A process died after identity had moved the clock: the event brings it, and the worker does what is due.
func TestClockHealedByItsEvent(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS), pgtest.Ctx(t, caller.Test)
	bookings := &app.Bookings{DB: db.App, Wake: func() {}, Now: time.Now}
	expiry := &app.Expiry{Bookings: bookings, Worker: db.Worker}
	until := time.Now().Add(time.Hour)
	b := domain.Booking{
		ID: domain.NewBookingID(), Number: "B-1", Status: domain.Pending, Loc: time.UTC, Version: 1, HoldExpiresAt: &until,
		Schedule: domain.Schedule{Day: domain.Date{Year: 2030, Month: 1, Day: 1}}, Amounts: domain.NoMoney("USD"),
	}
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertBooking(ctx, tx, b, nil)
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
	h := &consume.Tenants{App: &app.Clocks{DB: db.App, Bookings: bookings}}
	if err := h.Handle(t.Context(), tenantUpdated(t, caller.FromContext(ctx).Tenant, 2, `"2090-01-01T00:00:00Z"`)); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != domain.Expired {
		t.Errorf("after the event: %s", got)
	}
}
