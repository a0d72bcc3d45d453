package app_test

import (
	"testing"
	_ "time/tzdata"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/store"
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
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		if len(services.Items) != 2 || len(units.Items) != 4 || len(packages.Items) != 5 {
			t.Errorf("%d services, %d units, %d packages", len(services.Items), len(units.Items), len(packages.Items))
		}
		kinds := map[string]int{}
		for _, p := range packages.Items {
			kinds[string(p.DepositType)]++
			if p.BasePrice.Currency != demo.Currency || p.ID.Time() != caller.FromContext(ctx).Tenant.Time() {
				t.Errorf("%+v", p)
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
