package app_test

import (
	"context"
	"errors"
	"testing"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
	"holdfast.dev/services/bookings/migrations"
)

func TestSeedTwice(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	for _, demo := range []app.Demo{{Currency: "USD", Timezone: "America/New_York", Year: 2026}, {Currency: "JPY", Timezone: "Asia/Tokyo", Year: 2026}} {
		ctx := pgtest.Ctx(t, caller.Test)
		for range 2 {
			if err := app.Seed(ctx, db.App, demo); err != nil {
				t.Fatal(err)
			}
		}
		q, all := db.App.Read(ctx), page.Request{Limit: 100}
		services, err1 := store.Services(ctx, q, store.ServiceFilter{}, all)
		units, err2 := store.Units(ctx, q, store.UnitFilter{}, all)
		packages, err3 := store.Packages(ctx, q, store.PackageFilter{}, all)
		rules, err4 := store.Holidays(ctx, q, store.HolidayFilter{}, all)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		if len(rules.Items) != 3 || len(services.Items) != 3 || len(units.Items) != 5 || len(packages.Items) != 6 {
			t.Errorf("%d services, %d units, %d packages", len(services.Items), len(units.Items), len(packages.Items))
		}
		kinds := map[string]int{}
		for _, p := range packages.Items {
			kinds[string(p.DepositType)]++
			if p.BasePrice.Currency != demo.Currency || p.ID.Time() != caller.FromContext(ctx).Tenant.Time() {
				t.Errorf("%+v", p)
			}
		}
		counts := map[string]int{}
		for _, object := range seeded(t, db, ctx) {
			counts[object]++
		}
		for _, s := range services.Items {
			counts[encoded(t, view.Service(s, api.Test))]--
		}
		for _, u := range units.Items {
			counts[encoded(t, view.Unit(u, api.Test))]--
		}
		for _, p := range packages.Items {
			counts[encoded(t, view.Package(p, api.Test))]--
		}
		for _, r := range rules.Items {
			counts[encoded(t, view.HolidayRule(r, api.Test))]--
		}
		for object, n := range counts {
			if n != 0 {
				t.Errorf("%d events more than rows: %s", n, object)
			}
		}
		if len(kinds) != 3 {
			t.Errorf("deposits: %v", kinds)
		}
	}
	for _, bad := range []app.Demo{{Currency: "XXQ", Timezone: "UTC"}, {Currency: "USD", Timezone: "Mars"}} {
		if err := app.Seed(pgtest.Ctx(t, caller.Test), db.App, bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// seeded returns the objects of the events of the caller's tenant. All of these events are internal.
func seeded(t *testing.T, db *pgtest.DB, ctx context.Context) (objects []string) {
	t.Helper()
	err := db.Worker.SystemTx(t.Context(), func(own context.Context, tx pg.Tx) error {
		messages, err := pg.Many(own, tx, pgx.RowTo[[]byte], `select message from outbox where tenant_id = $1`, caller.FromContext(ctx).Tenant)
		for _, m := range messages {
			e, err := outbox.Decode(m)
			if err != nil {
				return err
			}
			if objects = append(objects, string(e.GetObject())); !e.GetInternal() || e.GetResourceVersion() != 1 {
				t.Errorf("event %v", e)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	body, err := contract.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
