package api_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

type invoices struct{ Data []invoice }

// invoicesAre checks the ids of a list, in order.
func (w *world) invoicesAre(ctx context.Context, query string, want ...string) {
	w.T.Helper()
	var got []string
	for _, v := range decode[invoices](w.do(ctx, "GET", "/invoices?"+query, "").is(200)).Data {
		got = append(got, v.ID)
	}
	if !slices.Equal(got, want) {
		w.T.Errorf("%s: got %v, want %v", query, got, want)
	}
}

func TestInvoiceFilters(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b := w.bookings.AddBooking(ids.Customer{}, money.Amount{Minor: 5, Currency: "USD"})
	a1 := w.draft(ctx, 1, `"booking_id":`+str(b.ID.String()), `"due_at":"2031-01-01"`, `"metadata":{"k":"v","l":"w"}`)
	a2 := w.open(ctx, 1, `"due_at":"2031-06-01"`, `"metadata":{"k":"v"}`)
	a3 := w.pay(ctx, w.open(ctx, 2), 1).is(200).invoice()
	a4 := w.pay(ctx, w.open(ctx, 1, `"metadata":["v"]`), 1).is(200).invoice()
	w.open(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), 1)
	w.open(pgtest.Ctx(t, caller.Test), 1)
	w.invoicesAre(ctx, "", a4.ID, a3.ID, a2.ID, a1.ID)
	w.invoicesAre(ctx, "sort=updated_at", a1.ID, a2.ID, a3.ID, a4.ID)
	w.invoicesAre(ctx, "status=draft", a1.ID)
	w.invoicesAre(ctx, "status=paid,draft,draft,void", a4.ID, a1.ID)
	w.invoicesAre(ctx, "status=paid,partially_paid,open&sort=updated_at", a2.ID, a3.ID, a4.ID)
	w.invoicesAre(ctx, "customer_id="+a2.CustomerID, a2.ID)
	w.invoicesAre(ctx, "customer_id=cu_x")
	w.invoicesAre(ctx, "booking_id="+b.ID.String(), a1.ID)
	w.invoicesAre(ctx, "booking_id="+ids.New[ids.BookingPrefix]().String())
	w.invoicesAre(ctx, "booking_id=x")
	w.invoicesAre(ctx, "due_before=2031-06-01T04:00:00.000001Z", a2.ID, a1.ID)
	w.invoicesAre(ctx, "due_before=2031-06-01T04:00:00Z", a1.ID)
	w.invoicesAre(ctx, "due_before=2032-01-01T00:00:00Z&status=open", a2.ID)
	w.invoicesAre(ctx, "metadata[k]=v", a2.ID, a1.ID)
	w.invoicesAre(ctx, "number="+deref(a2.Number), a2.ID)
	w.invoicesAre(ctx, "number="+strings.ToLower(deref(a3.Number))+"&status=partially_paid,draft", a3.ID)
	w.invoicesAre(ctx, "number="+deref(a3.Number)+"&status=draft")
	w.invoicesAre(ctx, "number="+strings.TrimPrefix(deref(a3.Number), "INV-"))
	w.invoicesAre(ctx, "number=inv-1")
	w.invoicesAre(ctx, "number=")
	w.Exec(`update invoices set number = 'Re/7' || lpad(seq::text, 6, '0') where number is not null`) // as with other prefixes
	w.invoicesAre(ctx, "number=rE/7000002", a3.ID)
	w.invoicesAre(ctx, "number=re/000002")
	w.invoicesAre(ctx, "metadata[k]=v&metadata[l]=w&overdue=false", a1.ID)
	w.invoicesAre(ctx, "created_after="+url.QueryEscape(a3.CreatedAt.Format(time.RFC3339Nano)), a4.ID, a3.ID)
	w.invoicesAre(ctx, "limit=1&created_before="+url.QueryEscape(a3.CreatedAt.Format(time.RFC3339Nano)), a2.ID)
	for query, field := range map[string]string{
		"status=unpaid": "status", "overdue=1": "overdue", "due_before=2031-01-01": "due_before", "expand=booking": "expand", "q=x": "q", "sort=due_at": "sort",
		"number=" + strings.Repeat("9", 51): "number",
	} {
		w.do(ctx, "GET", "/invoices?"+query, "").is(422, "invalid_request", field)
	}
	w.do(ctx, "GET", "/invoices?cursor=x", "").is(400, "invalid_cursor")
	for _, query := range []string{"", "status=open,paid,partially_paid,draft", "sort=updated_at", "overdue=false"} {
		get := func(q string) apitest.Response { return w.do(ctx, "GET", "/invoices?"+query+"&"+q, "").Response }
		want := []string{a4.ID, a3.ID, a2.ID, a1.ID}
		if strings.HasPrefix(query, "sort") {
			slices.Reverse(want)
		}
		if got, _ := w.Walk(get, 1); !slices.Equal(got, want) {
			t.Errorf("%s: walked %v", query, got)
		}
	}
}

func TestInvoiceExpand(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v, gone := w.open(ctx, 1), w.open(ctx, 1)
	w.do(ctx, "GET", "/invoices?expand=customer", "").is(403, "insufficient_scope")
	w.do(ctx, "GET", "/invoices/"+v.ID+"?expand=customer", "").is(403, "insufficient_scope")
	reader := in(ctx, func(c *caller.Caller) { c.Scopes = []string{"read:invoices", "read:customers"} })
	w.do(ctx, "DELETE", "/customers/"+gone.CustomerID, "").is(204)
	a := w.do(reader, "GET", "/invoices/"+v.ID+"?expand=customer", "").is(200)
	if got := a.invoice(); got.Customer == nil || got.Customer.ID != v.CustomerID || got.CustomerID != v.CustomerID {
		t.Errorf("expanded: %s", a.Body)
	}
	if a := w.do(reader, "GET", "/invoices/"+gone.ID+"?expand=customer", "").is(200); !strings.Contains(string(a.Body), `"customer":null`) {
		t.Errorf("of an erased customer: %s", a.Body)
	}
	list := decode[invoices](w.do(reader, "GET", "/invoices?expand=customer", "").is(200)).Data
	if len(list) != 2 || list[0].Customer != nil || list[1].Customer == nil || list[1].Customer.ID != v.CustomerID {
		t.Errorf("list: %+v", list)
	}
	if a := w.do(ctx, "GET", "/invoices/"+v.ID, "").is(200); strings.Contains(string(a.Body), `"customer":`) {
		t.Errorf("not requested: %s", a.Body)
	}
}

// TestInvoicesOfOthers checks that two tenants in two modes see nothing of each other's invoices, and that each has its own
// numbers.
func TestInvoicesOfOthers(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live, other := pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live), pgtest.Ctx(t, caller.Test)
	v := w.pay(ctx, w.open(ctx, 2), 1).is(200).invoice()
	if deref(w.open(live, 1).Number) != "INV-000001" || deref(w.open(other, 1).Number) != "INV-000001" || deref(w.open(ctx, 1).Number) != "INV-000002" {
		t.Error("numbers are counted together")
	}
	for _, r := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"PATCH", "", `{"notes":"x"}`},
		{"POST", "/open", ""},
		{"POST", "/void", ""},
		{"POST", "/mark-uncollectible", ""},
		{"POST", "/record-payment", `{"amount":` + usd(1) + `,"method":"cash"}`},
		{"POST", "/payments/" + v.Payments[0].ID + "/reverse", ""},
	} {
		w.do(live, r.method, "/invoices/"+v.ID+r.path, r.body).is(403, "mode_mismatch")
		w.do(other, r.method, "/invoices/"+v.ID+r.path, r.body).is(404, "invoice_not_found")
		w.do(ctx, r.method, "/invoices/"+ids.New[ids.InvoicePrefix]().String()+r.path, r.body).is(404, "invoice_not_found")
		w.do(ctx, r.method, "/invoices/inv_x"+r.path, r.body).is(404, "invoice_not_found")
	}
	for _, from := range []context.Context{live, other} {
		for _, query := range []string{"customer_id=" + v.CustomerID, "status=partially_paid", "limit=100"} {
			for _, got := range decode[invoices](w.do(from, "GET", "/invoices?"+query, "").is(200)).Data {
				if got.ID == v.ID {
					t.Errorf("%s shows another's invoice", query)
				}
			}
		}
	}
}

// TestPagesOfTheLargestInvoices checks that the largest invoices that the contract allows are returned in sufficiently small pages,
// each once.
func TestPagesOfTheLargestInvoices(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const four = "\U00010000" // one character, four bytes
	c := w.create(ctx, "")
	long := strings.Repeat("x", 5000)
	lines := strings.TrimSuffix(strings.Repeat(`{"description":`+str(long)+`,"quantity":1,"unit_amount":`+usd(100)+`},`, 100), ",")
	body := `{"customer_id":` + str(c.ID) + `,"line_items":[` + lines + `],"metadata":` + apitest.LargestMetadata() +
		`,"notes":` + str(strings.Repeat(four, 5000)) + `,"billing_address":` + str(strings.Repeat(four, 500)) + `}`
	var want []string
	for range 6 {
		v := w.do(ctx, "POST", "/invoices", body).is(201).invoice()
		want = append([]string{v.ID}, want...)
	}
	first := invoice{ID: want[0]}
	w.act(ctx, first, "open").is(200)
	pay := func() {
		w.act(ctx, first, "record-payment", `{"amount":`+usd(100)+`,"method":"cash","reference":`+str(strings.Repeat(four, 200))+`}`).is(200)
	}
	pay()
	w.Exec(`insert into invoice_payments (tenant_id, livemode, invoice_id, position, id, amount, method, source, paid_at, reference)
		select tenant_id, livemode, invoice_id, n, gen_random_uuid(), amount, method, source, paid_at, reference from invoice_payments, generate_series(2, 99) n`)
	w.Exec(`update invoices set paid = 99 * paid where paid > 0`)
	pay()
	one := w.do(ctx, "GET", "/invoices/"+want[0], "").is(200)
	if v := one.invoice(); len(v.Payments) != 100 || len(v.LineItems) != 100 || v.Status != "paid" || len(one.Body) < 700_000 {
		t.Errorf("%d bytes, %s", len(one.Body), v.Status)
	}
	get := func(query string) apitest.Response { return w.do(ctx, "GET", "/invoices?"+query, "").Response }
	got, sizes := w.Walk(get, 100)
	if total := 6 * len(body); !slices.Equal(got, want) || len(sizes) < total/page.MaxBytes {
		t.Errorf("%d of %d rows in pages of %v", len(got), len(want), sizes)
	}
	w.invoicesAre(ctx, "status=paid,draft&limit=1", want[0])
	// The body exceeds the maximum size by one byte, though each line is within its bounds.
	w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+strings.ReplaceAll(lines, long, strings.Repeat(four, 5000))+`]}`).is(413, "request_too_large")
}
