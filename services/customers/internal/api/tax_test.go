package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
)

// taxed is a document with its taxes as a client reads it.
type taxed struct {
	ID            string
	Behavior      string `json:"tax_behavior"`
	Subtotal      price  `json:"subtotal_amount"`
	Discount      price  `json:"discount_amount"`
	DiscountTotal price  `json:"discount_amount_total"`
	Tax           price  `json:"tax_amount"`
	Total         price  `json:"total_amount"`
	Breakdown     []struct {
		Name, Rate string
		Taxable    price `json:"taxable_amount"`
		Tax        price `json:"tax_amount"`
	} `json:"tax_breakdown"`
	Lines []struct {
		Taxes    []struct{ Name, Rate string }
		Bps      *int64 `json:"tax_rate_bps"`
		Fixed    *price `json:"fixed_discount_amount"`
		Discount price  `json:"discount_amount"`
		Tax      price  `json:"tax_amount"`
	} `json:"line_items"`
}

func (a response) taxed() taxed { return decode[taxed](a) }

// rows returns the breakdown in a short form.
func (d taxed) rows() string {
	var out []string
	for _, r := range d.Breakdown {
		out = append(out, fmt.Sprintf("%s %s on %d: %d", r.Name, r.Rate, r.Taxable.Amount, r.Tax.Amount))
	}
	return strings.Join(out, ", ")
}

// taxLine returns a line with additional fields.
func taxLine(minor int64, format string, args ...any) string {
	return fmt.Sprintf(`{"description":"x","quantity":1,"unit_amount":%s`, usd(minor)) + fmt.Sprintf(format, args...) + "}"
}

// onDocuments runs a test on quotes and on invoices.
func onDocuments(t *testing.T, test func(t *testing.T, w *world, ctx context.Context, path string, create func(fields ...string) response)) {
	t.Helper()
	for _, path := range []string{"/quotes", "/invoices"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
			customer := w.create(ctx, "").ID
			test(t, w, ctx, path, func(fields ...string) response {
				return w.do(ctx, "POST", path, `{"customer_id":`+str(customer)+`,`+strings.Join(fields, ",")+"}")
			})
		})
	}
}

// TestTaxesOfADocument checks the taxes of quotes and invoices against documents that were calculated by hand.
func TestTaxesOfADocument(t *testing.T) {
	t.Parallel()
	const gst = `,"taxes":[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]`
	onDocuments(t, func(t *testing.T, w *world, ctx context.Context, path string, create func(fields ...string) response) {
		for name, tc := range map[string]struct {
			fields                       string
			subtotal, tax, total, shares int64
			rows                         string
		}{
			"small lines": {
				`"line_items":[` + strings.TrimSuffix(strings.Repeat(taxLine(33, `,"tax_rate_bps":1900`)+",", 100), ",") + `]`, 3300, 627, 3927, 627, "Tax 19 on 3300: 627",
			},
			"New York":          {`"line_items":[` + taxLine(1999, `,"taxes":[{"name":"Sales tax","rate":"8.875"}]`) + `]`, 1999, 177, 2176, 177, "Sales tax 8.875 on 1999: 177"},
			"Quebec":            {`"line_items":[` + taxLine(10000, gst) + `]`, 10000, 1498, 11498, 1498, "GST 5 on 10000: 500, QST 9.975 on 10000: 998"},
			"Munich":            {`"tax_behavior":"inclusive","line_items":[` + taxLine(11900, `,"taxes":[{"name":"USt","rate":"19.00"}]`) + `]`, 11900, 1900, 11900, 1900, "USt 19 on 10000: 1900"},
			"Quebec, inclusive": {`"tax_behavior":"inclusive","line_items":[` + taxLine(11498, gst) + `]`, 11498, 1498, 11498, 1498, "GST 5 on 10000: 500, QST 9.975 on 10000: 998"},
			"none":              {`"line_items":[` + taxLine(100, `,"taxes":[]`) + `]`, 100, 0, 100, 0, ""},
		} {
			got := create(tc.fields).is(201).taxed()
			var shares int64
			for _, l := range got.Lines {
				shares += l.Tax.Amount
			}
			if got.Subtotal.Amount != tc.subtotal || got.Tax.Amount != tc.tax || got.Total.Amount != tc.total || shares != tc.shares || got.rows() != tc.rows {
				t.Errorf("%s: %+v", name, got)
			}
			if read := w.do(ctx, "GET", path+"/"+got.ID, "").is(200).taxed(); fmt.Sprint(read.rows(), read.Tax, read.Behavior) != fmt.Sprint(got.rows(), got.Tax, got.Behavior) {
				t.Errorf("%s is read as %+v", name, read)
			}
		}
		got := create(`"line_items":[` + taxLine(100, `,"taxes":[{"name":"A","rate":"8.875"},{"name":"B","rate":"0.125"}]`) + "," + taxLine(100, gst) + `]`).is(201).taxed()
		if a, b := got.Lines[0], got.Lines[1]; a.Bps == nil || *a.Bps != 900 || b.Bps != nil || a.Taxes[0].Rate != "8.875" || b.Taxes[1].Name != "QST" {
			t.Errorf("rates of the lines: %+v", got.Lines)
		}
	})
}

// TestDiscountsOfADocument checks fixed discounts, and which documents can change them.
func TestDiscountsOfADocument(t *testing.T) {
	t.Parallel()
	onDocuments(t, func(t *testing.T, w *world, ctx context.Context, path string, create func(fields ...string) response) {
		got := create(`"discount_amount_total":`+usd(1000), `"line_items":[`+taxLine(10000, `,"discount_amount":%s,"tax_rate_bps":1900`, usd(1000))+","+taxLine(4500, `,"tax_rate_bps":700`)+`]`).is(201).taxed()
		if got.Discount.Amount != 2000 || got.DiscountTotal.Amount != 1000 || got.Lines[0].Fixed.Amount != 1000 || got.Lines[0].Discount.Amount != 1667 ||
			got.Lines[1].Fixed != nil || got.Lines[1].Discount.Amount != 333 || got.rows() != "Tax 19 on 8333: 1583, Tax 7 on 4167: 292" || got.Total.Amount != 14375 {
			t.Errorf("%+v", got)
		}
		at := path + "/" + got.ID
		w.do(ctx, "PATCH", at, `{"discount_amount_total":`+usd(13501)+`}`).is(422, "invalid_request", "discount_amount_total")
		w.do(ctx, "PATCH", at, `{"discount_amount_total":{"amount":1,"currency":"EUR"}}`).is(422, "invalid_request", "discount_amount_total.currency")
		if none := w.do(ctx, "PATCH", at, `{"discount_amount_total":null}`).is(200).taxed(); none.Discount.Amount != 1000 || none.DiscountTotal.Amount != 0 || none.Lines[0].Tax.Amount != 1710 {
			t.Errorf("without the discount: %+v", none)
		}
		if included := w.do(ctx, "PATCH", at, `{"tax_behavior":"inclusive"}`).is(200).taxed(); included.Total.Amount != 13500 || included.rows() != "Tax 19 on 7563: 1437, Tax 7 on 4206: 294" {
			t.Errorf("with prices that include taxes: %+v", included)
		}
		same := w.do(ctx, "PATCH", at, `{"notes":"n"}`).is(200).taxed()
		if same.Total.Amount != 13500 || same.Behavior != "inclusive" {
			t.Errorf("another change: %+v", same)
		}
		action := map[string]string{"/quotes": "/cancel", "/invoices": "/open"}[path]
		w.do(ctx, "POST", at+action, "").is(200)
		for field, value := range map[string]string{"tax_behavior": `"exclusive"`, "discount_amount_total": "null"} {
			w.do(ctx, "PATCH", at, `{"`+field+`":`+value+`}`).is(422, "invalid_request", field)
		}
	})
}

// TestWrongTaxes checks the error on each field.
func TestWrongTaxes(t *testing.T) {
	t.Parallel()
	onDocuments(t, func(t *testing.T, _ *world, _ context.Context, _ string, create func(fields ...string) response) {
		tax := func(name, rate string) string { return fmt.Sprintf(`{"name":%q,"rate":%q}`, name, rate) }
		for fields, wrong := range map[string]string{
			`"taxes":[` + tax("", "1") + `]`:                                                                    "line_items.0.taxes.0.name",
			`"taxes":[` + tax(strings.Repeat("x", 51), "1") + `]`:                                               "line_items.0.taxes.0.name",
			`"taxes":[` + tax("a\nb", "1") + `]`:                                                                "line_items.0.taxes.0.name",
			`"taxes":[` + tax("A", "100.0001") + `]`:                                                            "line_items.0.taxes.0.rate",
			`"taxes":[` + tax("A", "1.00001") + `]`:                                                             "line_items.0.taxes.0.rate",
			`"taxes":[` + tax("A", "-1") + `]`:                                                                  "line_items.0.taxes.0.rate",
			`"taxes":[{"name":"A","rate":19}]`:                                                                  "line_items.0.taxes.0.rate",
			`"taxes":[` + tax("A", "1") + "," + tax("A", "1.0") + `]`:                                           "line_items.0.taxes.1.name",
			`"taxes":[` + tax("A", "1") + "," + tax("B", "1") + "," + tax("C", "1") + "," + tax("D", "1") + `]`: "line_items.0.taxes",
			`"taxes":[],"tax_rate_bps":0`:                                                                       "line_items.0.taxes",
			`"discount_bps":0,"discount_amount":` + usd(0):                                                      "line_items.0.discount_amount",
			`"discount_amount":` + usd(101):                                                                     "line_items.0.discount_amount",
			`"discount_amount":{"amount":1,"currency":"EUR"}`:                                                   "line_items.0.discount_amount.currency",
			`"discount_amount":{"amount":-1,"currency":"USD"}`:                                                  "line_items.0.discount_amount.amount",
		} {
			create(`"line_items":[`+taxLine(100, ",%s", fields)+`]`).is(422, "invalid_request", wrong)
		}
		create(`"line_items":[`+taxLine(100, "")+`]`, `"tax_behavior":"net"`).is(422, "invalid_request", "tax_behavior")
		create(`"line_items":[`+taxLine(100, "")+`]`, `"discount_amount_total":`+usd(101)).is(422, "invalid_request", "discount_amount_total")
	})
}

// TestDefaultTaxesOfTheTenant checks which lines get the tenant's taxes, and that a document that needs them waits for identity.
func TestDefaultTaxesOfTheTenant(t *testing.T) {
	t.Parallel()
	onDocuments(t, func(t *testing.T, w *world, ctx context.Context, path string, create func(fields ...string) response) {
		w.tenants.Info.Defaults = domain.TaxDefaults{Behavior: domain.TaxInclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}}
		got := create(`"line_items":[` + taxLine(11900, "") + "," + taxLine(100, `,"taxes":[]`) + "," + taxLine(100, `,"tax_rate_bps":0`) + `]`).is(201).taxed()
		if got.Behavior != "inclusive" || got.rows() != "VAT 19 on 10000: 1900" || len(got.Lines[1].Taxes)+len(got.Lines[2].Taxes) != 0 {
			t.Errorf("%+v", got)
		}
		w.tenants.Info.Defaults.Behavior = domain.TaxExclusive
		changed := w.do(ctx, "PATCH", path+"/"+got.ID, `{"line_items":[`+taxLine(23800, "")+`]}`).is(200).taxed()
		if changed.Behavior != "inclusive" || changed.rows() != "VAT 19 on 20000: 3800" {
			t.Errorf("a document keeps its behavior: %+v", changed)
		}
		w.tenants.Fail = apperr.ErrUnavailable
		create(`"line_items":[`+taxLine(1, `,"taxes":[]`)+`]`).is(503, "unavailable")
		w.do(ctx, "PATCH", path+"/"+got.ID, `{"line_items":[`+taxLine(1, "")+`]}`).is(503, "unavailable")
		create(`"tax_behavior":"exclusive"`, `"line_items":[`+taxLine(1, `,"taxes":[]`)+`]`).is(201)
		w.do(ctx, "PATCH", path+"/"+got.ID, `{"line_items":[`+taxLine(1, `,"tax_rate_bps":0`)+`]}`).is(200)
	})
}

// TestDefaultTaxesOfAService checks that the taxes of a service precede those of the tenant: the service of a quote or of its package,
// and of the booking of an invoice.
func TestDefaultTaxesOfAService(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Info.Defaults = domain.TaxDefaults{Behavior: domain.TaxExclusive, Taxes: []money.Tax{{Name: "VAT", Rate: 190_000}}}
	service, plain, free := ids.New[ids.ServicePrefix](), ids.New[ids.ServicePrefix](), ids.New[ids.ServicePrefix]()
	w.bookings.AddItem(domain.CatalogueItem{ID: service.String(), Version: 1, Details: domain.CatalogueDetails{Taxes: &[]money.Tax{{Name: "Reduced", Rate: 70_000}}}})
	w.bookings.AddItem(domain.CatalogueItem{ID: plain.String(), Version: 1, Details: domain.CatalogueDetails{}})
	w.bookings.AddItem(domain.CatalogueItem{ID: free.String(), Version: 1, Details: domain.CatalogueDetails{Taxes: &[]money.Tax{}}})
	pkg := w.bookings.AddPackage(domain.PackagePrice{
		Name: "Tour", Service: service, Total: usdOf(10000), Deposit: usdOf(2500),
		Defaults: domain.TaxDefaults{Behavior: domain.TaxExclusive, Taxes: []money.Tax{{Name: "Reduced", Rate: 70_000}}},
	})
	customer := w.create(ctx, "")
	const reduced, standard = "Reduced 7 on 10000: 700", "VAT 19 on 10000: 1900"
	line := `"line_items":[` + taxLine(10000, "") + `]`
	for name, tc := range map[string]struct{ fields, rows string }{
		"a service":                          {`"service_id":` + str(service.String()) + "," + line, reduced},
		"a service without":                  {`"service_id":` + str(plain.String()) + "," + line, standard},
		"a service that is free":             {`"service_id":` + str(free.String()) + "," + line, ""},
		"a package":                          {`"package_id":` + str(pkg.String()) + "," + line, reduced},
		"the price of a package":             {`"event_date":"2031-05-01","package_id":` + str(pkg.String()), reduced},
		"another service than the package's": {`"service_id":` + str(plain.String()) + `,"package_id":` + str(pkg.String()) + "," + line, standard},
		"nothing":                            {line, standard},
	} {
		got := w.do(ctx, "POST", "/quotes", `{"customer_id":`+str(customer.ID)+","+tc.fields+"}").is(201)
		if rows := got.taxed().rows(); rows != tc.rows {
			t.Errorf("a quote for %s: %s", name, rows)
		}
	}
	quote := w.do(ctx, "POST", "/quotes", `{"customer_id":`+str(customer.ID)+","+line+"}").is(201).taxed()
	if got := w.do(ctx, "PATCH", "/quotes/"+quote.ID, `{"service_id":`+str(service.String())+"}").is(200).taxed(); got.rows() != standard {
		t.Errorf("lines keep their taxes: %s", got.rows())
	}
	if got := w.do(ctx, "PATCH", "/quotes/"+quote.ID, "{"+line+"}").is(200).taxed(); got.rows() != reduced {
		t.Errorf("new lines: %s", got.rows())
	}
	b := w.bookings.AddBooking(customerID(t, customer), usdOf(500))
	b.ServiceID = service
	b = w.bookings.ChangeBooking(b)
	invoice := w.invoicing(ctx, `"booking_id":`+str(b.ID.String()), line).is(201).taxed()
	if invoice.rows() != reduced {
		t.Errorf("an invoice of a booking: %s", invoice.rows())
	}
	w.Exec(`delete from catalogue_items`)
	if got := w.do(ctx, "PATCH", "/invoices/"+invoice.ID, "{"+line+"}").is(200).taxed(); got.rows() != reduced {
		t.Errorf("new lines: %s", got.rows())
	}
	other := w.bookings.AddBooking(customerID(t, customer), usdOf(500))
	if got := w.do(ctx, "PATCH", "/invoices/"+invoice.ID, `{"booking_id":`+str(other.ID.String())+","+line+"}").is(200).taxed(); got.rows() != standard {
		t.Errorf("of another booking: %s", got.rows())
	}
}

// TestADepositIsAtMostTheDiscountedTotal checks that the deposit of a package shrinks with the quote, but not one that a client sends.
func TestADepositIsAtMostTheDiscountedTotal(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	pkg := w.bookings.AddPackage(domain.PackagePrice{Name: "Tour", Service: ids.New[ids.ServicePrefix](), Total: usdOf(10000), Deposit: usdOf(2500)})
	body := `{"customer_id":` + str(w.create(ctx, "").ID) + `,"event_date":"2031-05-01","package_id":` + str(pkg.String()) + `,"discount_amount_total":` + usd(9000)
	if q := w.do(ctx, "POST", "/quotes", body+"}").is(201).quote(); q.Total.Amount != 1000 || q.Deposit.Amount != 1000 {
		t.Errorf("%+v", q)
	}
	w.do(ctx, "POST", "/quotes", body+`,"deposit_amount":`+usd(1001)+"}").is(422, "invalid_request", "deposit_amount")
}

// TestOnlyDraftsCanBeDeleted checks that a draft is deleted with its copies, and that other documents stay.
func TestOnlyDraftsCanBeDeleted(t *testing.T) {
	t.Parallel()
	onDocuments(t, func(t *testing.T, w *world, ctx context.Context, path string, create func(fields ...string) response) {
		noun := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "s")
		customer, line := w.create(ctx, "").ID, `"line_items":[`+taxLine(100, "")+`]`
		body := `{"customer_id":` + str(customer) + `,"notes":"Privatus","metadata":{"k":"Privatus"},` + line + "}"
		id := w.do(ctx, "POST", path, body, "Idempotency-Key: k").is(201).taxed().ID
		at := path + "/" + id
		copies := func() int {
			return w.Count(`select count(*) from outbox where encode(message, 'escape') like '%Privatus%'`) +
				w.Count(`select count(*) from idempotency_keys where encode(body, 'escape') like '%Privatus%'`)
		}
		if n := copies(); n != 2 {
			t.Fatalf("%d copies", n)
		}
		w.do(pg.OtherMode(ctx), "DELETE", at, "").is(403, "mode_mismatch")
		w.do(pgtest.Ctx(t, caller.Test), "DELETE", at, "").is(404, noun+"_not_found")
		w.do(ctx, "DELETE", at, "", `If-Match: "7"`).is(412)
		w.do(ctx, "DELETE", at, "", `If-Match: "1"`).is(204)
		w.do(ctx, "GET", at, "").is(404, noun+"_not_found")
		w.do(ctx, "DELETE", at, "").is(404, noun+"_not_found")
		if n := copies() + w.Count(`select count(*) from `+noun+`_metadata`); n != 0 {
			t.Errorf("%d copies remain", n)
		}
		events := w.Events()
		if last := events[len(events)-1]; last.Type != noun+".erased" || !last.Internal || last.ObjectId != id || last.ResourceVersion != 2 {
			t.Errorf("%+v", last)
		}
		opened := path + "/" + create(line).is(201).taxed().ID
		w.do(ctx, "POST", opened+map[string]string{"/quotes": "/cancel", "/invoices": "/open"}[path], "").is(200)
		a := w.do(ctx, "DELETE", opened, "").is(422, "invalid_status_transition", "status")
		if !strings.Contains(string(a.Body), "Only a draft can be deleted. This "+noun+" is") {
			t.Errorf("%s", a.Body)
		}
		w.do(ctx, "DELETE", opened, "", `If-Match: "1"`).is(412)
		w.do(ctx, "GET", opened, "").is(200)
	})
}

// TestThousandths checks that lines and taxes in a currency with three decimals are exact, that only the total is rounded, and that the
// rounding of the balance and of the credit notes adds up to that of the quote and the invoice.
func TestThousandths(t *testing.T) {
	t.Parallel()
	w, usd := newWorld(t), pgtest.Ctx(t, caller.Test)
	ctx := in(usd, func(c *caller.Caller) { c.Currency = "KWD" })
	customer := `"customer_id":` + str(w.create(ctx, "").ID)
	line := func(quantity, minor int) string {
		return fmt.Sprintf(`{"description":"d","quantity":%d,"unit_amount":{"amount":%d,"currency":"KWD"},"taxes":[{"name":"VAT","rate":"8.25"}]}`, quantity, minor)
	}
	// sums returns tax, rounding and total of a document, after it checked that the document is stored like that.
	sums := func(path string, a response) [3]int64 {
		t.Helper()
		type document struct {
			ID       string
			Tax      amount `json:"tax_amount"`
			Rounding amount `json:"rounding_amount"`
			Total    amount `json:"total_amount"`
		}
		d := decode[document](a)
		if got := decode[document](w.do(ctx, "GET", path+d.ID, "").is(200)); got != d || d.Rounding.Currency != "KWD" {
			t.Errorf("%+v is stored as %+v", d, got)
		}
		w.do(ctx, "GET", path+d.ID+"/pdf", "").pdf()
		return [3]int64{d.Tax.Amount, d.Rounding.Amount, d.Total.Amount}
	}
	for name, c := range map[string]struct {
		lines, fields string
		want          [3]int64
	}{
		"one line":         {line(100, 125), `"tax_behavior":"exclusive"`, [3]int64{1031, -1, 13_530}},
		"a hundred lines":  {strings.Repeat(line(1, 125)+",", 99) + line(1, 125), `"tax_behavior":"exclusive"`, [3]int64{1031, -1, 13_530}},
		"with taxes":       {line(1, 1005), `"tax_behavior":"inclusive"`, [3]int64{77, 5, 1010}},
		"with a discount":  {line(1, 1005), `"tax_behavior":"inclusive","discount_amount_total":{"amount":3,"currency":"KWD"}`, [3]int64{76, -2, 1000}},
		"a multiple of 10": {line(1, 1000), `"tax_behavior":"inclusive"`, [3]int64{76, 0, 1000}},
	} {
		a := w.do(ctx, "POST", "/invoices", `{`+customer+`,`+c.fields+`,"line_items":[`+c.lines+`]}`).is(201)
		if got := sums("/invoices/", a); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	v := w.do(ctx, "POST", "/invoices", `{`+customer+`,"tax_behavior":"exclusive","line_items":[`+line(1, 1005)+`]}`).is(201)
	if got := sums("/invoices/", v); got != [3]int64{83, 2, 1090} {
		t.Errorf("the invoice is %v", got)
	}
	w.act(ctx, v.invoice(), "open").is(200)
	for _, c := range []struct {
		body string
		want [3]int64
	}{
		{`{"line_items":[` + line(1, 300) + `]}`, [3]int64{25, 5, 330}},
		{`{"amount":{"amount":100,"currency":"KWD"}}`, [3]int64{8, 0, 100}},
		{`{}`, [3]int64{50, -3, 660}},
	} {
		if got := sums("/credit-notes/", w.credit(ctx, v.invoice(), c.body).is(201)); got != c.want {
			t.Errorf("the credit note %s is %v", c.body, got)
		}
	}
	w.credit(ctx, v.invoice(), `{}`).is(422, "invalid_status_transition", "status")
	q := w.do(ctx, "POST", "/quotes", `{`+customer+`,"event_date":"2031-05-01","tax_behavior":"exclusive","line_items":[`+line(1, 1005)+`],"deposit_amount":{"amount":500,"currency":"KWD"}}`).is(201)
	if got := sums("/quotes/", q); got != [3]int64{83, 2, 1090} {
		t.Errorf("the quote is %v", got)
	}
	w.onQuote(ctx, q.quote().ID, "send").is(200)
	accepted := w.onQuote(ctx, q.quote().ID, "accept").is(200).quote()
	balance := w.do(ctx, "POST", "/invoices", `{`+customer+`,"kind":"balance","booking_id":`+str(deref(accepted.BookingID))+`}`).is(201)
	if got := sums("/invoices/", balance); got != [3]int64{45, 2, 590} {
		t.Errorf("the balance is %v", got)
	}
	if got := sums("/invoices/", w.act(ctx, balance.invoice(), "open").is(200)); got != [3]int64{45, 2, 590} {
		t.Errorf("the opened balance is %v", got)
	}
}
