package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
)

func customerID(t *testing.T, c customer) domain.CustomerID {
	t.Helper()
	id, err := ids.Parse[ids.CustomerPrefix](c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func usdOf(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "USD"} }

func (w *world) invoicing(ctx context.Context, fields ...string) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/invoices", "{"+strings.Join(fields, ",")+"}")
}

// TestInvoiceCustomer checks that the customer of an invoice must exist in the caller's tenant and mode, and by default is the
// booking's customer.
func TestInvoiceCustomer(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live)
	c, erased := w.create(ctx, ""), w.create(ctx, "")
	w.do(ctx, "DELETE", "/customers/"+erased.ID, "").is(204)
	v, lines := w.draft(ctx, 1), `"line_items":[`+line(1)+`]`
	for _, id := range []string{w.create(live, "").ID, w.create(pgtest.Ctx(t, caller.Test), "").ID, ids.New[ids.CustomerPrefix]().String(), erased.ID, "cu_x", "x", ""} {
		w.invoicing(ctx, `"customer_id":`+str(id), lines).is(422, "invalid_request", "customer_id")
		w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"customer_id":`+str(id)+`}`).is(422, "invalid_request", "customer_id")
	}
	w.invoicing(ctx, lines).is(422, "invalid_request", "customer_id")
	w.invoicing(ctx, `"customer_id":null`, lines).is(422, "invalid_request", "customer_id")
	ofCustomer := w.bookings.AddBooking(customerID(t, c), usdOf(5)).ID.String()
	if got := w.invoicing(ctx, `"booking_id":`+str(ofCustomer), lines).is(201).invoice(); got.CustomerID != c.ID || deref(got.BookingID) != ofCustomer {
		t.Errorf("the booking's customer: %+v", got)
	}
	if got := w.invoicing(ctx, `"booking_id":`+str(ofCustomer), `"customer_id":`+str(v.CustomerID), lines).is(201).invoice(); got.CustomerID != v.CustomerID {
		t.Errorf("another customer than the booking's: %+v", got)
	}
	withoutCustomer, gone := w.bookings.AddBooking(domain.CustomerID{}, usdOf(5)), w.bookings.AddBooking(customerID(t, erased), usdOf(5))
	for _, b := range []domain.Booking{withoutCustomer, gone} {
		w.invoicing(ctx, `"booking_id":`+str(b.ID.String()), lines).is(422, "invalid_request", "customer_id")
		w.invoicing(ctx, `"booking_id":`+str(b.ID.String()), `"kind":"balance"`).is(422, "invalid_request", "customer_id")
	}
	a := w.invoicing(ctx, `"booking_id":`+str(ids.New[ids.BookingPrefix]().String())).is(422, "invalid_request", "booking_id")
	if got := decode[struct{ Errors map[string][]string }](a).Errors; len(got) != 2 || got["line_items"] == nil {
		t.Errorf("all failed fields are named: %s", a.Body)
	}
	draft := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,`+lines+`}`).is(201).invoice()
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
	w.act(ctx, draft, "open").is(422, "invalid_request", "customer_id")
}

// TestInvoiceBooking checks that a booking that no event has reported is looked up once. It must have the caller's tenant and mode. Its
// currency is that of the invoice, also after the currency of the operator has changed.
func TestInvoiceBooking(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	calls := 0
	w.bookings.Before = func(context.Context, string) error {
		calls++
		return nil
	}
	b := w.bookings.AddBooking(customerID(t, c), usdOf(500))
	fields := []string{`"booking_id":` + str(b.ID.String()), `"line_items":[` + line(1) + `]`}
	v := w.invoicing(ctx, fields...).is(201).invoice()
	w.invoicing(ctx, fields...).is(201)
	if calls != 1 || deref(v.BookingStatus) != "pending" {
		t.Errorf("%d calls, %+v", calls, v)
	}
	euro := w.bookings.AddBooking(customerID(t, c), money.Amount{Minor: 5, Currency: "EUR"})
	w.invoicing(ctx, `"booking_id":`+str(euro.ID.String()), fields[1]).is(422, "invalid_request", "line_items.0.unit_amount.currency")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"booking_id":`+str(euro.ID.String())+`}`).is(422, "invalid_request", "booking_id")
	for _, id := range []string{ids.New[ids.BookingPrefix]().String(), "bk_x", "x"} {
		w.invoicing(ctx, `"booking_id":`+str(id), `"customer_id":`+str(c.ID), fields[1]).is(422, "invalid_request", "booking_id")
		w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"booking_id":`+str(id)+`}`).is(422, "invalid_request", "booking_id")
	}
	w.invoicing(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), fields...).is(422, "invalid_request", "customer_id")
	moved := in(ctx, func(c *caller.Caller) { c.Currency = "EUR" }) // the operator has changed the currency
	euros := `"line_items":[{"description":"d","quantity":1,"unit_amount":{"amount":1,"currency":"EUR"}}]`
	if a := w.do(moved, "PATCH", "/invoices/"+v.ID, "{"+euros+"}").is(422, "invalid_request", "line_items.0.unit_amount.currency"); !strings.Contains(string(a.Body), "Must be in USD") {
		t.Errorf("%s", a.Body)
	}
	w.do(moved, "PATCH", "/invoices/"+v.ID, "{"+fields[1]+"}").is(200)
	w.invoicing(moved, fields[0], euros).is(422, "invalid_request", "line_items.0.unit_amount.currency")
	if got := w.invoicing(moved, fields...).is(201).invoice(); got.Total != (amount{1, "USD"}) || got.AmountPaid.Currency != "USD" {
		t.Errorf("of a booking in dollars: %+v", got)
	}
	if got := w.invoicing(ctx, `"booking_id":`+str(euro.ID.String()), `"kind":"balance"`).is(201).invoice(); got.Total != (amount{5, "EUR"}) || got.AmountPaid.Currency != "EUR" {
		t.Errorf("of a booking in euros: %+v", got)
	}
	if got := w.do(moved, "PATCH", "/invoices/"+v.ID, `{"booking_id":`+str(euro.ID.String())+","+euros+"}").is(200).invoice(); got.Total.Currency != "EUR" || got.AmountDue.Currency != "EUR" {
		t.Errorf("in euros: %+v", got)
	}
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable.WithCause(errors.New("down")) }
	w.invoicing(ctx, fields...).is(201) // it is known now
	unknown := `"booking_id":` + str(ids.New[ids.BookingPrefix]().String())
	w.invoicing(ctx, `"customer_id":`+str(c.ID), unknown, fields[1]).is(503, "unavailable")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, "{"+unknown+"}").is(503, "unavailable")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"notes":"x"}`).is(200)
	w.tenants.Fail = apperr.ErrUnavailable
	w.act(ctx, v, "open").is(503, "unavailable")
	w.tenants.Fail = nil
	w.act(ctx, v, "open").is(503, "unavailable") // the days of the booking are not known
	w.bookings.Before = nil
	w.act(ctx, v, "open").is(200)
	w.tenants.Fail = apperr.ErrUnavailable
	w.act(ctx, v, "open").is(200) // already open
}

// TestBalance checks that a balance charges the part of the booking's current total that its opened invoices do not cover.
func TestBalance(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	b := w.bookings.AddBooking(customerID(t, c), usdOf(1000))
	booked, balance := `"booking_id":`+str(b.ID.String()), `"kind":"balance"`
	w.invoicing(ctx, booked, `"kind":"deposit"`).is(422, "invalid_request", "line_items")
	w.invoicing(ctx, booked).is(422, "invalid_request", "line_items")
	w.invoicing(ctx, balance, `"customer_id":`+str(c.ID)).is(422, "invalid_request", "line_items")
	w.draft(ctx, 999, booked)                            // a draft does not count
	w.act(ctx, w.open(ctx, 999, booked), "void").is(200) // neither does a void one
	w.open(ctx, 300, booked, `"kind":"deposit"`)         // this one does
	given := w.invoicing(ctx, booked, balance, `"line_items":[`+line(1)+`]`).is(201).invoice()
	v := w.invoicing(ctx, booked, balance).is(201).invoice()
	if l := v.LineItems; given.Total.Amount != 1 || v.Total.Amount != 700 || v.Tax.Amount != 0 || len(l) != 2 ||
		l[0].Description != "Booking "+b.Number || l[0].UnitAmount.Amount != 1000 || l[1].UnitAmount.Amount != -300 ||
		!strings.HasPrefix(l[1].Description, "Less invoice INV-000002 of ") || v.CustomerID != c.ID || v.Kind != "balance" || v.Status != "draft" {
		t.Errorf("given %+v, created %+v", given, v)
	}
	second := w.invoicing(ctx, booked, balance).is(201).invoice()
	w.act(ctx, v, "open").is(200)
	for _, a := range []response{w.invoicing(ctx, booked, balance), w.act(ctx, second, "open")} {
		if a.is(422, "invalid_request", "booking_id"); !strings.Contains(string(a.Body), "Nothing is left to invoice.") {
			t.Errorf("got %s", a.Body)
		}
	}
	b.Total.Minor = 1200
	b = w.bookings.ChangeBooking(b)
	if got := w.invoicing(ctx, booked, balance).is(201).invoice(); got.Total.Amount != 200 {
		t.Errorf("of the new total: %+v", got)
	}
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.invoicing(ctx, booked, balance).is(503, "unavailable")
}

// TestOpenedBalance checks that opening a balance writes its lines again, from the price that bookings returns: no event reports it.
// It checks that a balance stays one of its booking.
func TestOpenedBalance(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	b := w.bookings.AddBooking(customerID(t, c), usdOf(11900))
	booked, balance := `"booking_id":`+str(b.ID.String()), `"kind":"balance"`
	vat := `"taxes":[{"name":"VAT","rate":"19"}]`
	w.tenants.Info.Defaults.Taxes = []money.Tax{{Name: "VAT", Rate: 190_000}}
	v := w.invoicing(ctx, booked, balance).is(201).invoice()
	other := w.bookings.AddBooking(customerID(t, c), usdOf(11900)).ID.String()
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"kind":"full"}`).is(422, "invalid_request", "kind")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"booking_id":`+str(other)+`}`).is(422, "invalid_request", "booking_id")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"booking_id":null}`).is(422, "invalid_request", "booking_id")
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{`+booked+`,`+balance+`,"notes":"n"}`).is(200)
	w.open(ctx, 1000, booked, `"kind":"deposit"`)
	void := w.open(ctx, 500, booked)
	w.act(ctx, void, "void").is(200)
	b.Total.Minor = 5000
	b = w.bookings.ChangeBooking(b)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.act(ctx, v, "open").is(503, "unavailable")
	w.bookings.Before = nil
	got := w.act(ctx, v, "open").is(200).invoice()
	rows := w.taxes(ctx, "/invoices/"+v.ID)
	if l := got.LineItems; got.Total.Amount != 3810 || len(l) != 2 || l[0].UnitAmount.Amount != 5000 || l[1].UnitAmount.Amount != -1190 || deref(got.Notes) != "n" ||
		fmt.Sprint(rows.rows()) != "[VAT 19: 608 on 3202]" {
		t.Errorf("%+v, %v", got, rows.rows())
	}
	stale := w.invoicing(ctx, `"booking_id":`+str(other), balance).is(201).invoice()
	w.open(ctx, 11900, `"booking_id":`+str(other))
	w.act(ctx, stale, "open").is(422, "invalid_request", "booking_id")
	own := w.invoicing(ctx, booked, balance, `"line_items":[{"description":"d","quantity":1,"unit_amount":`+usd(900)+`,`+vat+`}]`).is(201).invoice()
	if got := w.act(ctx, own, "open").is(200).invoice(); got.Total.Amount != own.Total.Amount {
		t.Errorf("with lines of the client: %+v", got)
	}
}

func TestInvoiceLines(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.draft(ctx, 1)
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(line(1)+",", n), ",") }
	one := func(fields ...string) string { // a line with these fields, given as alternating names and values
		all := map[string]string{"description": `"d"`, "quantity": "1", "unit_amount": usd(1)}
		for i := 0; i < len(fields); i += 2 {
			all[fields[i]] = fields[i+1]
		}
		var out []string
		for name, value := range all {
			out = append(out, str(name)+":"+value)
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	const most, euro = 99_999_999_999, `{"amount":1,"currency":"EUR"}`
	for _, tc := range [][2]string{
		{"", "line_items"},
		{many(100), ""},
		{many(101), "line_items"},
		{one("description", `""`), "line_items.0.description"},
		{one("description", str(strings.Repeat(emoji, 5000))), ""},
		{one("description", str(strings.Repeat("x", 5001))), "line_items.0.description"},
		{one("quantity", "0"), "line_items.0.quantity"},
		{one("quantity", "10000"), ""},
		{one("quantity", "10001"), "line_items.0.quantity"},
		{one("unit_amount", usd(-1)), "line_items.0.unit_amount.amount"},
		{one("unit_amount", usd(0)), ""},
		{one("unit_amount", usd(most)), ""},
		{one("unit_amount", usd(most+1)), "line_items.0.unit_amount.amount"},
		{one("quantity", "2", "unit_amount", usd(most)), "line_items.0.unit_amount"},
		{one("unit_amount", usd(most)) + "," + line(1), "line_items"},
		{one("tax_rate_bps", "1", "unit_amount", usd(most)), "line_items"},
		{one("unit_amount", euro), "line_items.0.unit_amount.currency"},
		{line(1) + "," + one("unit_amount", euro), "line_items.1.unit_amount.currency"},
		{one("discount_bps", "10000"), ""},
		{one("discount_bps", "10001"), "line_items.0.discount_bps"},
		{one("tax_rate_bps", "10001"), "line_items.0.tax_rate_bps"},
		{one("tax_rate_bps", "-1"), "line_items.0.tax_rate_bps"},
	} {
		lines, wrong := tc[0], tc[1]
		created := w.invoicing(ctx, `"customer_id":`+str(v.CustomerID), `"line_items":[`+lines+`]`)
		changed := w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"line_items":[`+lines+`]}`)
		if wrong == "" {
			created.is(201)
			changed.is(200)
			continue
		}
		created.is(422, "invalid_request", wrong)
		changed.is(422, "invalid_request", wrong)
	}
	for field, values := range map[string][2]string{
		"billing_address": {str(strings.Repeat(emoji, 500)), str(strings.Repeat("x", 501))},
		"notes":           {str(strings.Repeat(emoji, 5000)), str(strings.Repeat("x", 5001))},
		"due_at":          {`"2199-12-31"`, `"2200-01-01"`},
		"kind":            {`"deposit"`, `"half"`},
		"metadata":        {bag(50), bag(51)},
	} {
		for i, value := range values {
			created := w.invoicing(ctx, `"customer_id":`+str(v.CustomerID), `"line_items":[`+line(1)+`]`, fmt.Sprintf(`%q:%s`, field, value))
			changed := w.do(ctx, "PATCH", "/invoices/"+v.ID, fmt.Sprintf(`{%q:%s}`, field, value))
			if i == 0 {
				created.is(201)
				changed.is(200)
				continue
			}
			created.is(422, "invalid_request", field)
			changed.is(422, "invalid_request", field)
		}
	}
}

// TestEraseInvoices checks that an invoice retains its recipient, but no other personal data, when the customer is erased.
func TestEraseInvoices(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c, other := w.create(ctx, ""), w.open(ctx, 10, `"notes":"Kept"`)
	const personal = `"notes":"Trace","billing_address":"Street","metadata":{"trace":"Trace"}`
	var all []invoice
	for range 203 { // more than two batches
		all = append(all, w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+line(9)+`],`+personal+`}`).is(201).invoice())
	}
	key := header("Idempotency-Key: k")
	body := `{"customer_id":` + str(c.ID) + `,"line_items":[` + line(9) + `],` + personal + `}`
	first := w.do(ctx, "POST", "/invoices", body, key).is(201).invoice()
	w.do(ctx, "PATCH", "/invoices/"+first.ID, `{"notes":null,"metadata":null,"billing_address":null}`).is(200) // its events still contain them
	v := w.act(ctx, all[0], "open").is(200).invoice()
	v = w.act(ctx, v, "record-payment", `{"amount":`+usd(4)+`,"method":"cash","reference":"Trace"}`).is(200).invoice()
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)

	got := w.invoice(ctx, v.ID)
	if got.Notes != nil || got.BillingAddress != nil || string(got.Metadata) != "{}" || got.Payments[0].Reference != nil || got.Version != v.Version+1 ||
		got.AmountPaid.Amount != 4 || got.Billing == nil || got.Billing.Name != v.Billing.Name || deref(got.Billing.Address) != "Street" {
		t.Errorf("erased: %+v", got)
	}
	if again := w.do(ctx, "POST", "/invoices", body, key).is(201); strings.Contains(string(again.Body), "Trace") || again.invoice().ID != first.ID {
		t.Errorf("the stored response: %s", again.Body)
	}
	for _, sql := range []string{
		`select count(*) from invoices where (notes is not null or billing_address is not null or metadata is not null) and notes <> 'Kept'`,
		`select count(*) from invoice_metadata`, `select count(*) from invoice_payments where reference is not null`,
		`select count(*) from idempotency_keys where encode(body, 'escape') like '%Trace%'`,
		`select count(*) from outbox where encode(message, 'escape') like '%Trace%'`,
	} {
		if n := w.Count(sql); n != 0 {
			t.Errorf("%d left: %s", n, sql)
		}
	}
	erased := map[string]int{}
	for _, e := range w.Events() {
		if e.Type == "invoice.erased" {
			erased[e.ObjectId]++
			if !e.Internal || string(e.Object) != `{"id":"`+e.ObjectId+`","object":"invoice","erased":true}` {
				t.Errorf("event %v", e)
			}
		}
	}
	if len(erased) != 204 || erased[first.ID] != 1 || erased[other.ID] != 0 {
		t.Errorf("%d invoices are erased", len(erased))
	}
	if got := w.invoice(ctx, other.ID); deref(got.Notes) != "Kept" || got.Version != other.Version {
		t.Errorf("of another customer: %+v", got)
	}
}

// TestEventOfADeletedDraft checks that the event of a draft that is deleted says so, for the booking that lists it.
func TestEventOfADeletedDraft(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	v := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+line(9)+`]}`).is(201).invoice()
	w.do(ctx, "DELETE", "/invoices/"+v.ID, "").is(204)
	events := w.Events()
	e := events[len(events)-1]
	if want := `{"id":"` + v.ID + `","object":"invoice","erased":true,"deleted":true}`; e.Type != "invoice.erased" || string(e.Object) != want || e.ResourceVersion != 2 {
		t.Errorf("event %v, want %s", e, want)
	}
}
