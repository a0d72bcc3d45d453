package api_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/report"
)

// requestPrices requests the prices of a package.
func (w *world) requestPrices(ctx context.Context, pack, from, to string) response {
	w.T.Helper()
	query := url.Values{"package_id": {pack}, "from": {from}, "to": {to}}
	return w.from(operator(ctx, "read:services"), "console", "GET", "/package-prices?"+query.Encode(), "")
}

func (w *world) prices(ctx context.Context, pack fmt.Stringer, from, to string) internalapi.PackagePrices {
	w.T.Helper()
	return decode[internalapi.PackagePrices](w.requestPrices(ctx, pack.String(), from, to).is(200))
}

// TestPackagePricesAreThoseOfBookings checks that the price of a day equals the price of a booking on that day, and that it names
// the same rule as the booking.
func TestPackagePricesAreThoseOfBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.offer(ctx, "/holiday-rules", `{"name":"First","date_from":"2030-07-03","date_to":"2030-07-05","multiplier_bps":12000,"priority":5,"stackable":true}`)
	w.offer(ctx, "/holiday-rules", fmt.Sprintf(`{"name":"Tours","date_from":"2030-07-04","date_to":"2030-07-04","multiplier_bps":11000,"priority":9,"stackable":true,"applies_to":{"service_ids":[%q]}}`, s.tour))
	w.offer(ctx, "/holiday-rules", `{"name":"Off","date_from":"2030-01-01","date_to":"2030-12-31","multiplier_bps":1,"priority":99,"active":false}`)
	w.do(ctx, "PATCH", "/services/"+s.rental.String(), `{"default_taxes":[{"name":"Sales tax","rate":"8.875"}]}`).is(200)
	w.setTaxes(ctx, money.TaxExclusive, money.Tax{Name: "VAT", Rate: 190_000})
	for _, pack := range []domain.PackageID{s.flat, s.share, s.hidden, s.yen} {
		got := w.prices(ctx, pack, "2030-01-01", "2030-12-31")
		if got.PackageID != pack.String() || len(got.Data) != 365 {
			t.Fatalf("got %+v", got)
		}
		for _, n := range []int{0, 1, 2, 100, 181, 183, 184, 185, 186, 211, 212, 363, 364} {
			d := got.Data[n]
			b := w.book(ctx, `"event_date":%q,"package_id":%q`, d.Date, pack)
			if *d.TotalAmount != b.TotalAmount.Amount || *d.DepositAmount != b.DepositAmount.Amount || got.Currency != b.TotalAmount.Currency ||
				got.Name != b.PackageSnapshot.Name || got.ServiceID != *b.ServiceID {
				t.Errorf("%s: %+v of %+v, want %+v", d.Date, d, got, b)
			}
			if h := b.PackageSnapshot.Holiday; (h == nil) != (d.Holiday == nil) || h != nil && (h.Name != d.Holiday.Name || h.MultiplierBps != d.Holiday.MultiplierBps || h.ID != d.Holiday.ID) {
				t.Errorf("%s: holiday %+v, want %+v", d.Date, d.Holiday, h)
			}
		}
	}
	leap := w.prices(ctx, s.gone, "2032-01-01", "2032-12-31") // of a package that is not active
	if len(leap.Data) != report.MaxPriceDays || leap.Data[59].Date != "2032-02-29" || *leap.Data[59].TotalAmount != 1 {
		t.Errorf("%d days", len(leap.Data))
	}
}

// TestDaysWithoutAPrice checks that a day on which no booking is possible has no price.
func TestDaysWithoutAPrice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), zoned(pgtest.Ctx(t, caller.Test), "Pacific/Apia")
	s := w.shop(ctx)
	dear := w.offer(ctx, "/packages", fmt.Sprintf(`{"name":"Dear","service_id":%q,"base_price":{"amount":%d,"currency":"USD"}}`, s.tour, domain.MaxAmount)).ID
	for _, tc := range []struct {
		pack, from, to string
		none           string
	}{
		{s.flat.String(), "2011-12-29", "2011-12-31", "2011-12-30"}, // the day does not exist
		{dear, "2030-06-30", "2030-07-01", "2030-07-01"},            // the rule for July increases the largest amount
	} {
		for _, d := range decode[internalapi.PackagePrices](w.requestPrices(ctx, tc.pack, tc.from, tc.to).is(200)).Data {
			refused := w.post(ctx, fmt.Sprintf(`{"event_date":%q,"package_id":%q}`, d.Date, tc.pack)).Status == 422
			if none := d.TotalAmount == nil && d.DepositAmount == nil && d.Holiday == nil; none != (d.Date == tc.none) || none != refused {
				t.Errorf("%s: %+v, refused %v", d.Date, d, refused)
			}
		}
	}
}

func TestPackagePricesAreTheConsoles(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	test, live := both(tenant, t)
	s, elsewhere, others := w.shop(test), w.shop(live), w.shop(pgtest.Ctx(t, caller.Test))
	for _, pack := range []string{elsewhere.flat.String(), others.flat.String(), id[domain.PackagePrefix]().String(), s.ada.String(), "x", ""} {
		w.requestPrices(test, pack, "2030-01-01", "2030-01-02").is(422, "invalid_request", "package_id")
	}
	if a := w.from(operator(test, "read:services"), "console", "GET", "/package-prices?from=2030-01-01&to=2030-01-02", "").is(422, "invalid_request", "package_id"); !strings.Contains(string(a.Body), "Is required.") {
		t.Errorf("got %s", a.Body)
	}
	flat := s.flat.String()
	w.requestPrices(test, flat, "2030-01-01", "2031-01-02").is(422, "invalid_request", "to")
	w.requestPrices(test, flat, "2030-01-02", "2030-01-01").is(422, "invalid_request", "to")
	w.requestPrices(test, flat, "x", "2030-01-01").is(422, "invalid_request", "from")
	path := "/package-prices?from=2030-01-01&to=2030-01-02&package_id=" + flat
	w.from(operator(test, "read:services"), "customers", "GET", path, "").is(401, "invalid_credential")
	a := w.from(operator(test, "read:bookings"), "console", "GET", path, "").is(403, "insufficient_scope")
	if e := apitest.Decode[struct{ Error struct{ Message string } }](a.Response); e.Error.Message != "The credential lacks the scope read:services." {
		t.Errorf("got %s", a.Body)
	}
	w.Exec(`update holiday_rules set multiplier_bps = 1 where not (livemode = false and tenant_id = $1)`, tenant) // rules of other tenants and modes
	if got := w.prices(test, s.flat, "2030-07-04", "2030-07-04"); len(got.Data) != 1 || *got.Data[0].TotalAmount != 22999 {
		t.Errorf("got %+v", got)
	}
}
