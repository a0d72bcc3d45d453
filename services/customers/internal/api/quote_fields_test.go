package api_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// TestEachFieldOfAQuoteIsWritten checks that a writable field is returned as it was written, in the response and in the next read.
func TestEachFieldOfAQuoteIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	service, unit, pkg := w.catalogue()
	body := fmt.Sprintf(`{"customer_id":%q,"lead_id":%q,"service_id":%q,"unit_id":%q,"package_id":%q,"event_date":"2031-05-01T18:00:00Z",
		"event_start_time":"10:00","event_end_time":"02:00","guest_count":3,"line_items":[{"description":"Hall","quantity":2,"unit_amount":{"amount":1050,"currency":"USD"},
		"discount_bps":1000,"tax_rate_bps":825}],"tax_behavior":"inclusive","discount_amount_total":{"amount":90,"currency":"USD"},"deposit_amount":{"amount":500,"currency":"USD"},"expires_at":"2031-01-01T00:00:00Z",
		"notes":"n","terms":"t","metadata":{"k":"v"}}`, w.create(ctx, "").ID, w.lead(ctx, "").ID, service, unit, pkg)
	created := w.do(ctx, "POST", "/quotes", body).is(201)
	apitest.Written[publicapi.QuoteCreate](t, body, created.Body, "line_items")
	apitest.Written[publicapi.QuoteUpdate](t, body, w.do(ctx, "GET", "/quotes/"+created.quote().ID, "").is(200).Body, "line_items")
	changed := w.do(ctx, "PATCH", "/quotes/"+w.newQuote(ctx, "").ID, body).is(200)
	apitest.Written[publicapi.QuoteUpdate](t, body, changed.Body, "line_items")
	q := changed.quote()
	if q.Subtotal.Amount != 2100 || q.Discount.Amount != 300 || q.Tax.Amount != 137 || q.Total.Amount != 1800 || deref(q.LocalDate) != "2031-05-01" || len(q.LineItems) != 1 {
		t.Errorf("amounts %+v", q)
	}
	cleared := `{"lead_id":null,"service_id":null,"unit_id":null,"package_id":null,"event_date":null,"event_start_time":null,"event_end_time":null,"guest_count":null,
		"discount_amount_total":null,"deposit_amount":null,"expires_at":null,"notes":null,"terms":null,"metadata":null}`
	got := w.do(ctx, "PATCH", "/quotes/"+q.ID, cleared).is(200)
	apitest.Written[publicapi.QuoteUpdate](t, cleared, got.Body, "customer_id", "guest_count", "line_items", "tax_behavior", "discount_amount_total", "deposit_amount", "metadata")
	if c := got.quote(); c.Deposit.Amount != 0 || string(c.Metadata) != "{}" || c.Total.Amount != 1890 || c.Guests != 1 {
		t.Errorf("cleared %+v", c)
	}
	events := len(w.Events())
	if again := w.do(ctx, "PATCH", "/quotes/"+q.ID, cleared).is(200).quote(); again.Version != got.quote().Version || len(w.Events()) != events {
		t.Errorf("the same again created version %d", again.Version)
	}
}

// oneLine returns a line of 100.00 with additional fields.
func oneLine(format string, args ...any) string {
	return `[{"description":"x","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}` + fmt.Sprintf(format, args...) + `}]`
}

func lineOf(description, quantity, amount string) string {
	return fmt.Sprintf(`[{"description":%s,"quantity":%s,"unit_amount":{"amount":%s,"currency":"USD"}}]`, description, quantity, amount)
}

func manyLines(n int) string {
	one := strings.Trim(lineOf(`"x"`, "1", "1000"), "[]")
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

func TestBoundsOfAQuote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	customer, path := w.create(ctx, "").ID, "/quotes/"+w.newQuote(ctx, "").ID
	service, unit, pkg := w.catalogue()
	other := w.create(pgtest.Ctx(t, caller.Test), "").ID
	erased := w.create(ctx, "").ID
	w.do(ctx, "DELETE", "/customers/"+erased, "").is(204)
	for _, b := range []struct{ field, value, wrong string }{
		{"customer_id", str(other), "customer_id"},
		{"customer_id", str(erased), "customer_id"},
		{"customer_id", `"cu_x"`, "customer_id"},
		{"customer_id", `null`, "customer_id"},
		{"lead_id", str(ids.New[ids.LeadPrefix]().String()), "lead_id"},
		{"lead_id", `"ld_x"`, "lead_id"},
		{"lead_id", `null`, ""},
		{"service_id", str(service), ""},
		{"service_id", str(ids.New[ids.ServicePrefix]().String()), "service_id"},
		{"service_id", str(unit), "service_id"},
		{"unit_id", str(unit), ""},
		{"unit_id", str(ids.New[ids.UnitPrefix]().String()), "unit_id"},
		{"unit_id", `"un_x"`, "unit_id"},
		{"package_id", str(pkg), ""},
		{"package_id", str(ids.New[ids.PackagePrefix]().String()), "package_id"},
		{"event_date", `"1900-01-01"`, ""},
		{"event_date", `"1899-12-31"`, "event_date"},
		{"event_date", `"2199-12-31"`, ""},
		{"event_date", `"2200-01-01"`, "event_date"},
		{"event_start_time", `"23:59"`, ""},
		{"event_start_time", `"24:00"`, "event_start_time"},
		{"event_start_time", `"9:00"`, "event_start_time"},
		{"event_start_time", `null`, ""},
		{"event_end_time", `"25:00"`, "event_end_time"},
		{"guest_count", `1`, ""},
		{"guest_count", `2147483647`, ""},
		{"guest_count", `0`, "guest_count"},
		{"guest_count", `2147483648`, "guest_count"},
		{"guest_count", `1.0`, "guest_count"},
		{"line_items", lineOf(`"x"`, "10000", "1000"), ""},
		{"line_items", lineOf(`"x"`, "10001", "1"), "line_items.0.quantity"},
		{"line_items", lineOf(`"x"`, "0", "1"), "line_items.0.quantity"},
		{"line_items", lineOf(`"x"`, "1", "99999999999"), ""},
		{"line_items", lineOf(`"x"`, "1", "100000000000"), "line_items.0.unit_amount.amount"},
		{"line_items", lineOf(`"x"`, "2", "99999999999"), "line_items.0.unit_amount"},
		{"line_items", lineOf(`"x"`, "1", "-1"), "line_items.0.unit_amount.amount"},
		{"line_items", lineOf(str(strings.Repeat(emoji, 5000)), "1", "1000"), ""},
		{"line_items", lineOf(str(strings.Repeat("x", 5001)), "1", "1"), "line_items.0.description"},
		{"line_items", lineOf(`""`, "1", "1"), "line_items.0.description"},
		{"line_items", `[]`, "line_items"},
		{"line_items", `null`, "line_items"},
		{"line_items", manyLines(100), ""},
		{"line_items", manyLines(101), "line_items"},
		{"line_items", oneLine(`,"tax_rate_bps":10000,"discount_bps":0`), ""},
		{"line_items", oneLine(`,"tax_rate_bps":10001`), "line_items.0.tax_rate_bps"},
		{"line_items", oneLine(`,"discount_bps":1001,"tax_rate_bps":-1`), "line_items.0.tax_rate_bps"},
		{"line_items", oneLine(`,"discount_bps":10001`), "line_items.0.discount_bps"},
		{"line_items", `[{"description":"x","quantity":1,"unit_amount":{"amount":1,"currency":"EUR"}}]`, "line_items.0.unit_amount.currency"},
		{"deposit_amount", `{"amount":0,"currency":"USD"}`, ""},
		{"deposit_amount", `{"amount":10000,"currency":"USD"}`, ""},
		{"deposit_amount", `{"amount":10001,"currency":"USD"}`, "deposit_amount"},
		{"deposit_amount", `{"amount":1,"currency":"EUR"}`, "deposit_amount.currency"},
		{"deposit_amount", `{"amount":-1,"currency":"USD"}`, "deposit_amount.amount"},
		{"deposit_amount", `null`, ""},
		{"expires_at", `"2001-01-01T00:00:00Z"`, "expires_at"},
		{"expires_at", `"2199-12-31"`, ""},
		{"expires_at", `"soon"`, "expires_at"},
		{"expires_at", `null`, ""},
		{"notes", str(strings.Repeat(emoji, 5000)), ""},
		{"notes", str(strings.Repeat("n", 5001)), "notes"},
		{"terms", str(strings.Repeat(emoji, 5000)), ""},
		{"terms", str(strings.Repeat("n", 5001)), "terms"},
		{"metadata", bag(50), ""},
		{"metadata", bag(51), "metadata"},
	} {
		// Each field is checked together with the lines and the day that the other fields require.
		fields := map[string]string{"customer_id": str(customer), "line_items": oneLine(""), "event_date": `"2031-05-01"`, "deposit_amount": `null`}
		change := map[string]string{"line_items": oneLine(""), "event_date": `"2031-05-01"`, "deposit_amount": `null`}
		fields[b.field], change[b.field] = b.value, b.value
		created, changed := w.do(ctx, "POST", "/quotes", object(fields)), w.do(ctx, "PATCH", path, object(change))
		if b.wrong == "" {
			created.is(201)
			changed.is(200)
			continue
		}
		created.is(422, "invalid_request", b.wrong)
		changed.is(422, "invalid_request", b.wrong)
	}
	w.do(ctx, "PATCH", path, `{"event_start_time":null,"event_end_time":"10:00"}`).is(422, "invalid_request", "event_end_time")
	w.do(ctx, "PATCH", path, `{"event_date":null,"event_start_time":"10:00"}`).is(422, "invalid_request", "event_date")
	w.do(ctx, "PATCH", path, `{"customer_id":"cu_x","deposit_amount":{"amount":99999999,"currency":"USD"},"expires_at":"2001-01-01"}`).is(422, "invalid_request", "customer_id")
}

func object(fields map[string]string) string {
	var all []string
	for k, v := range fields {
		all = append(all, str(k)+":"+v)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// TestQuoteOfAPackage checks that a package prices a quote as bookings specifies: in one line, with its deposit unless another one
// is given.
func TestQuoteOfAPackage(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	usd := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }
	pkg := w.bookings.AddPackage(domain.PackagePrice{Name: "Wedding", Total: usd(70000), Deposit: usd(20000)}).String()
	euros := w.bookings.AddPackage(domain.PackagePrice{Name: "Hochzeit", Total: money.Amount{Minor: 1000, Currency: "EUR"}, Deposit: money.Amount{Minor: 300, Currency: "EUR"}}).String()
	customer := w.create(ctx, "").ID
	post := func(format string, args ...any) response {
		t.Helper()
		return w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q`, customer)+fmt.Sprintf(format, args...)+"}")
	}
	q := post(`,"package_id":%q,"event_date":"2031-05-01"`, pkg).is(201).quote()
	if q.Total.Amount != 70000 || q.Deposit.Amount != 20000 || len(q.LineItems) != 1 || !strings.Contains(string(q.LineItems[0]), `"Wedding"`) {
		t.Errorf("priced %+v", q)
	}
	if q := post(`,"package_id":%q,"event_date":"2031-05-01","deposit_amount":{"amount":1,"currency":"USD"}`, pkg).is(201).quote(); q.Deposit.Amount != 1 {
		t.Errorf("deposit %+v", q.Deposit)
	}
	if q := post(`,"package_id":%q,"event_date":"2031-05-01",%s`, pkg, lines).is(201).quote(); q.Total.Amount != 10000 || q.Deposit.Amount != 0 {
		t.Errorf("with lines %+v", q)
	}
	post(``).is(422, "invalid_request", "line_items")
	post(`,"event_date":"2031-05-01"`).is(422, "invalid_request", "line_items")
	post(`,"package_id":%q`, pkg).is(422, "invalid_request", "event_date")
	q = post(`,"package_id":%q,"event_date":"2031-05-01"`, euros).is(201).quote() // priced before the operator changed the currency
	if q.Total != (price{1000, "EUR"}) || q.Deposit != (price{300, "EUR"}) {
		t.Errorf("in euros %+v", q)
	}
	w.onQuote(ctx, q.ID, "send").is(200)
	accepted := w.onQuote(ctx, q.ID, "accept").is(200).quote()
	if b := w.bookings.Requests()[0]; b.Total != (money.Amount{Minor: 1000, Currency: "EUR"}) {
		t.Errorf("the booking %+v", b)
	}
	if v := w.invoice(ctx, accepted.InvoiceIDs[0]); v.Total != (amount{300, "EUR"}) {
		t.Errorf("the deposit %+v", v)
	}
	rest := `{"kind":"balance","booking_id":` + str(deref(accepted.BookingID)) + `,"customer_id":` + str(customer) + `}`
	if v := w.do(ctx, "POST", "/invoices", rest).is(201).invoice(); v.Total != (amount{700, "EUR"}) || v.AmountDue.Currency != "EUR" {
		t.Errorf("the balance %+v", v)
	}
	post(`,"package_id":%q,"event_date":"2031-05-01","discount_amount_total":{"amount":1,"currency":"USD"}`, euros).is(422, "invalid_request", "discount_amount_total.currency")
	w.bookings.Before = func(_ context.Context, call string) error {
		if call == "price" {
			return apperr.Field("event_date", "The unit is closed.")
		}
		return nil
	}
	post(`,"package_id":%q,"event_date":"2031-05-01"`, pkg).is(422, "invalid_request", "event_date")
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	post(`,"package_id":%q,"event_date":"2031-05-01"`, pkg).is(503)
	post(`,"package_id":%q,%s`, pkg, lines).is(201) // known now
	w.bookings.Before = nil
	first := w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,%s}`, customer, lines), "Idempotency-Key: k").is(201)
	again := w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,%s}`, customer, lines), "Idempotency-Key: k").is(201)
	if string(first.Body) != string(again.Body) {
		t.Errorf("repeated %s", again.Body)
	}
}

// TestListOfQuotes checks that lists can be filtered, and that each row is expanded if the scope allows it.
func TestListOfQuotes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	lead := w.lead(ctx, "").ID
	one := w.sentQuote(ctx, fmt.Sprintf(`"lead_id":%q,"metadata":{"k":"v"}`, lead))
	two := w.sentQuote(ctx, "")
	accepted := w.onQuote(ctx, two.ID, "accept").is(200).quote()
	draft := w.newQuote(ctx, "")
	for query, want := range map[string][]string{
		"":                                  {draft.ID, two.ID, one.ID},
		"status=sent":                       {one.ID},
		"status=accepted,draft,draft":       {draft.ID, two.ID},
		"status=expired":                    {},
		"customer_id=" + one.CustomerID:     {one.ID},
		"customer_id=cu_x":                  {},
		"lead_id=" + lead:                   {one.ID},
		"booking_id=" + *accepted.BookingID: {two.ID},
		"metadata[k]=v":                     {one.ID},
		"metadata[k]=v&status=draft":        {},
		"number=" + one.Number:              {one.ID},
		"number=" + strings.ToLower(two.Number) + "&status=accepted": {two.ID},
		"number=" + one.Number + "&status=draft":                     {},
		"number=" + one.Number[2:]:                                   {},
		"number=":                                                    {},
		"created_before=2001-01-01T00:00:00Z":                        {},
		"status=sent,accepted,draft&limit=100":                       {draft.ID, two.ID, one.ID},
	} {
		var got []string
		for _, row := range w.do(ctx, "GET", "/quotes?"+query, "").is(200).list().Data {
			got = append(got, row.ID)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
	all, _ := w.Walk(func(query string) apitest.Response {
		return w.do(ctx, "GET", "/quotes?status=sent,accepted,draft&"+query, "").Response
	}, 1)
	if len(all) != 3 {
		t.Errorf("walked %v", all)
	}
	w.do(ctx, "GET", "/quotes?status=new", "").is(422, "invalid_request", "status")
	withdrawn := w.do(ctx, "GET", "/quotes?status=cancelled", "").is(200).Body
	if canceled := w.do(ctx, "GET", "/quotes?status=canceled", "").is(200).Body; !bytes.Equal(canceled, withdrawn) {
		t.Errorf("%s\nwant %s", canceled, withdrawn)
	}
	w.do(ctx, "GET", "/quotes?number="+strings.Repeat("9", 51), "").is(422, "invalid_request", "number")
	w.do(ctx, "GET", "/quotes?cursor=x", "").is(400, "invalid_cursor")
	for _, path := range []string{"/quotes/" + one.ID, "/quotes"} {
		w.do(ctx, "GET", path+"?expand=customer", "").is(403, "insufficient_scope")
		w.do(withScopes(ctx, "read:customers"), "GET", path+"?expand=customer,lead", "").is(403, "insufficient_scope")
		body := string(w.do(withScopes(ctx, "read:customers", "read:leads"), "GET", path+"?expand=customer,lead", "").is(200).Body)
		if !strings.Contains(body, `"customer":{"`) || !strings.Contains(body, `"lead":{"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	w.do(ctx, "DELETE", "/customers/"+one.CustomerID, "").is(204)
	erased := w.do(withScopes(ctx, "read:customers"), "GET", "/quotes/"+one.ID+"?expand=customer", "").is(200)
	if !strings.Contains(string(erased.Body), `"customer":null`) || string(erased.quote().Metadata) != "{}" || erased.quote().Version != one.Version+1 {
		t.Errorf("erased: %s", erased.Body)
	}
	if n := w.Count(`select count(*) from quote_metadata`); n != 0 {
		t.Errorf("%d pairs are left", n)
	}
}

// TestQuoteOfAGroup checks that the guests of a quote multiply the price of a package per guest, that the line shows their number, and
// that the booking gets it.
func TestQuoteOfAGroup(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	pkg := w.bookings.AddPackage(domain.PackagePrice{Name: "Seat", Guests: new(1), Total: usdOf(4500), Deposit: usdOf(0)}).String()
	customer := w.create(ctx, "").ID
	post := func(fields string) response {
		t.Helper()
		return w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":"2031-05-01","package_id":%q%s}`, customer, pkg, fields))
	}
	q := post(`,"guest_count":4`).is(201).quote()
	if q.Guests != 4 || q.Total.Amount != 18000 || !strings.Contains(string(q.LineItems[0]), `"quantity":4,"unit_amount":{"amount":4500,`) {
		t.Errorf("%+v, %s", q, q.LineItems)
	}
	for _, fields := range []string{"", `,"guest_count":null`} {
		if one := post(fields).is(201).quote(); one.Guests != 1 || one.Total.Amount != 4500 {
			t.Errorf("%s: %+v", fields, one)
		}
	}
	for _, fields := range []string{`,"guest_count":0`, `,"guest_count":-1`, `,"guest_count":2147483648`, `,"guest_count":0,` + lines} {
		post(fields).is(422, "invalid_request", "guest_count")
	}
	at := "/quotes/" + q.ID
	if other := w.do(ctx, "PATCH", at, `{"guest_count":5}`).is(200).quote(); other.Guests != 5 || other.Total.Amount != 18000 || other.Version != 2 {
		t.Errorf("changed: %+v", other)
	}
	w.onQuote(ctx, q.ID, "send").is(200)
	w.do(ctx, "PATCH", at, `{"guest_count":6}`).is(422, "invalid_request", "guest_count")
	one := post("").is(201).quote()
	w.onQuote(ctx, one.ID, "send").is(200)
	w.bookings.Before = func(_ context.Context, call string) error {
		if call == "create" && len(w.bookings.Requests()) == 0 {
			return apperr.Field("guest_count", "Must be at most 4, the unit's capacity.")
		}
		return nil
	}
	w.onQuote(ctx, q.ID, "accept").is(422, "invalid_request", "guest_count")
	w.bookings.Before = nil
	w.onQuote(ctx, q.ID, "accept").is(200)
	w.onQuote(ctx, one.ID, "accept").is(200)
	sent := w.bookings.Requests()
	if !strings.Contains(string(sent[0].Body), `"guest_count":5`) || !strings.Contains(string(sent[1].Body), `"guest_count":1`) {
		t.Errorf("sent %s and %s", sent[0].Body, sent[1].Body)
	}
}
