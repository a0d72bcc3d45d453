package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// setTaxes sets the default taxes of the caller's tenant.
func (w *world) setTaxes(ctx context.Context, behavior money.TaxBehavior, taxes ...money.Tax) {
	w.tenants.SetTaxes(caller.FromContext(ctx).Tenant, domain.TaxDefaults{Behavior: behavior, Taxes: taxes})
}

// costs fails the test unless the booking has these amounts and taxes, in USD.
func (w *world) costs(b booking, behavior string, total, gross, deposit int64, rows ...taxRow) {
	w.T.Helper()
	var tax int64
	for _, r := range rows {
		tax += r.Tax.Amount
	}
	usd := func(n int64) amount { return amount{n, "USD"} }
	if b.TaxBehavior == nil != (behavior == "") || b.TaxBehavior != nil && *b.TaxBehavior != behavior {
		w.T.Errorf("tax_behavior %v, want %q", b.TaxBehavior, behavior)
	}
	if b.TotalAmount != usd(total) || b.GrossAmount != usd(gross) || b.DepositAmount != usd(deposit) || b.TaxAmount != usd(tax) ||
		b.AmountDue != usd(gross) || !slices.Equal(b.TaxBreakdown, rows) {
		w.T.Errorf("total %v, gross %v, deposit %v, taxes %v %+v, due %v", b.TotalAmount, b.GrossAmount, b.DepositAmount, b.TaxAmount, b.TaxBreakdown, b.AmountDue)
	}
}

// TestTaxesOfABooking checks that a booking has the default taxes of its service, or else of the operator, as of the time when it was
// priced, and that its gross amount and its deposit include them.
func TestTaxesOfABooking(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	row := func(name, rate string, taxable, tax int64) taxRow {
		return taxRow{Name: name, Rate: rate, Taxable: amount{taxable, "USD"}, Tax: amount{tax, "USD"}}
	}
	book := func(pack domain.PackageID) booking {
		return w.book(ctx, `"event_date":"2030-05-01","package_id":%q`, pack)
	}
	w.costs(book(s.share), "exclusive", 1001, 1001, 501)
	w.costs(w.book(ctx, `"event_date":"2030-05-01"`), "", 0, 0, 0)

	w.setTaxes(ctx, money.TaxExclusive, money.Tax{Name: "GST", Rate: 50_000}, money.Tax{Name: "QST", Rate: 99_750})
	quebec := book(s.share)
	first := []taxRow{row("GST", "5", 1001, 50), row("QST", "9.975", 1001, 100)}
	w.costs(quebec, "exclusive", 1001, 1151, 576, first...) // half of 1151, rounded

	taxes := func(list string) {
		w.do(ctx, "PATCH", "/services/"+s.tour.String(), `{"default_taxes":`+list+`}`).is(200)
	}
	taxes(`[{"name":"Sales tax","rate":"8.875"}]`)
	w.costs(book(s.share), "exclusive", 1001, 1090, 545, row("Sales tax", "8.875", 1001, 89))
	taxes(`[]`)
	w.costs(book(s.share), "exclusive", 1001, 1001, 501)
	w.costs(book(s.plain), "exclusive", 12345, 14193, 0, row("GST", "5", 12345, 617), row("QST", "9.975", 12345, 1231)) // of another service
	taxes(`null`)
	w.setTaxes(ctx, money.TaxInclusive, money.Tax{Name: "USt", Rate: 190_000})
	munich := row("USt", "19", 841, 160)
	w.costs(book(s.share), "inclusive", 1001, 1001, 501, munich)

	// A booking keeps its taxes until it is priced again.
	w.costs(w.patch(ctx, quebec.ID, `{"event_date":"2030-05-02"}`).is(200).booking(), "exclusive", 1001, 1151, 576, first...)
	again := w.do(ctx, "POST", "/bookings/"+quebec.ID+"/reprice", "").is(200)
	w.costs(again.booking(), "inclusive", 1001, 1001, 501, munich)
	events := w.Events()
	if was := string(events[len(events)-1].GetPreviousAttributes()); !strings.Contains(was, `"gross_amount":{"amount":1151,"currency":"USD"}`) || !strings.Contains(was, `"tax_behavior":"exclusive"`) {
		t.Errorf("previous %s", was)
	}
	w.costs(w.patch(ctx, quebec.ID, fmt.Sprintf(`{"package_id":%q}`, s.hidden)).is(200).booking(), "inclusive", 1, 1, 0, row("USt", "19", 1, 0))
	w.costs(w.patch(ctx, quebec.ID, `{"package_id":null}`).is(200).booking(), "", 0, 0, 0)

	// A booking without taxes shows none.
	old := book(s.share)
	w.Exec(`update bookings set taxes = null where number = $1`, old.Number)
	w.costs(w.get(ctx, old.ID), "", 1001, 1001, 501)

	other := pgtest.Ctx(t, caller.Test) // another tenant
	w.costs(w.book(other, `"event_date":"2030-05-01","package_id":%q`, w.shop(other).share), "exclusive", 1001, 1001, 501)
}

// TestPaidWithTaxes checks that the gross amount decides about the payment status.
func TestPaidWithTaxes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.setTaxes(ctx, money.TaxExclusive, money.Tax{Name: "Sales tax", Rate: 88_750})
	b := w.book(ctx, `"event_date":"2030-05-01","package_id":%q`, s.plain)
	for paid, want := range map[int64]string{12345: "partially_paid", 13440: "partially_paid", 13441: "paid", 13442: "overpaid"} {
		w.Exec(`update bookings set paid = $1`, paid)
		if got := w.get(ctx, b.ID); got.PaymentStatus != want || got.AmountDue.Amount != max(0, 13441-paid) {
			t.Errorf("paid %d: %s, due %d", paid, got.PaymentStatus, got.AmountDue.Amount)
		}
	}
}

// TestBookingOfAQuoteRetainsItsPrice checks that the booking of a quote has the total and the taxes of the quote, and that nothing
// recalculates them.
func TestBookingOfAQuoteRetainsItsPrice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.setTaxes(ctx, money.TaxExclusive, money.Tax{Name: "VAT", Rate: 190_000})
	origin := fmt.Sprintf(`"quote_id":%q,"total_amount":4899,"deposit_amount":50,"tax_breakdown":[{"name":"Sales tax","rate":"8.875","taxable":4500,"tax":399}]`, id[ids.QuotePrefix]())
	a := w.link(ctx, origin, fmt.Sprintf(`"event_date":"2030-05-01","package_id":%q,"guest_count":2`, s.share)).is(200)
	row := taxRow{Name: "Sales tax", Rate: "8.875", Taxable: amount{4500, "USD"}, Tax: amount{399, "USD"}}
	w.costs(a.booking(), "inclusive", 4899, 4899, 50, row)
	id := a.booking().ID
	w.do(ctx, "POST", "/bookings/"+id+"/reprice", "").is(422, "invalid_request", "quote_id")
	w.patch(ctx, id, fmt.Sprintf(`{"package_id":%q}`, s.flat)).is(422, "invalid_request", "quote_id")
	w.patch(ctx, id, `{"package_id":null}`).is(422, "invalid_request", "quote_id")
	w.costs(w.patch(ctx, id, fmt.Sprintf(`{"package_id":%q,"guest_count":3,"event_date":"2030-07-04"}`, s.share)).is(200).booking(), "inclusive", 4899, 4899, 50, row)

	w.link(ctx, ofQuote(1, 0)+`,"tax_breakdown":[{"name":"x","rate":"101","taxable":1,"tax":1}]`, `"event_date":"2030-05-01"`).is(422, "invalid_request", "tax_breakdown.0.rate")
	w.link(ctx, ofLead()+`,"tax_breakdown":[{"name":"x","rate":"1","taxable":1,"tax":1}]`, `"event_date":"2030-05-01"`).is(422, "invalid_request", "tax_breakdown")
}

// TestPriceHasTaxes checks that the price for a quote names the taxes that the booking would have.
func TestPriceHasTaxes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.setTaxes(ctx, money.TaxExclusive, money.Tax{Name: "VAT", Rate: 190_000})
	got := w.from(ctx, "customers", "POST", "/prices", fmt.Sprintf(`{"package_id":%q,"event_date":"2030-05-01"}`, s.share)).is(200)
	if want := `"total_amount":1001,"deposit_amount":596,"tax_behavior":"exclusive","taxes":[{"name":"VAT","rate":"19"}]}`; !strings.Contains(string(got.Body), want) {
		t.Errorf("got %s", got.Body)
	}
}
