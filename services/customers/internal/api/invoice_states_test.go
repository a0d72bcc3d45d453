package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// invoiceIn creates an invoice of 100 in a state.
func (w *world) invoiceIn(ctx context.Context, state string) invoice {
	w.T.Helper()
	v := w.draft(ctx, 100)
	if state == "draft" {
		return v
	}
	v = w.act(ctx, v, "open").is(200).invoice()
	switch state {
	case "open":
	case "partially_paid":
		v = w.pay(ctx, v, 40).is(200).invoice()
	case "paid":
		w.pay(ctx, v, 40).is(200)
		v = w.pay(ctx, v, 60).is(200).invoice()
	case "uncollectible":
		v = w.act(ctx, v, "mark-uncollectible").is(200).invoice()
	case "uncollectible, a part paid":
		w.pay(ctx, v, 40).is(200)
		v = w.act(ctx, v, "mark-uncollectible").is(200).invoice()
	case "void":
		v = w.act(ctx, v, "void").is(200).invoice()
	default:
		w.T.Fatalf("no way to %s", state)
	}
	return v
}

// TestEachInvoiceActionInEachState checks the resulting state or the error of each action in each state. A refused action emits no
// event.
func TestEachInvoiceActionInEachState(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const no, high, stays = "invalid_status_transition status", "invalid_request amount", "uncollectible"
	type row struct{ open, void, uncollectible, part, whole, over, reverse string }
	for state, want := range map[string]row{
		"draft":                      {"open", no, no, no, no, no, ""},
		"open":                       {"same", "void", "uncollectible", "partially_paid", "paid", high, ""},
		"partially_paid":             {no, no, "uncollectible", "partially_paid", "paid", high, "open"},
		"paid":                       {no, no, no, no, no, no, "partially_paid"},
		"uncollectible":              {no, "void", "same", stays, "paid", high, ""},
		"uncollectible, a part paid": {no, no, "same", stays, "paid", high, "uncollectible"},
		"void":                       {no, "same", no, no, no, no, ""},
	} {
		for action, result := range map[string]string{
			"open": want.open, "void": want.void, "mark-uncollectible": want.uncollectible, "part": want.part,
			"whole": want.whole, "over": want.over, "reverse": want.reverse,
		} {
			if result == "" {
				continue
			}
			v := w.invoiceIn(ctx, state)
			path, body := action, ""
			money := map[string]int64{"part": v.AmountDue.Amount - 1, "whole": v.AmountDue.Amount, "over": v.AmountDue.Amount + 1}
			if minor, ok := money[action]; ok {
				path, body = "record-payment", `{"amount":`+usd(max(minor, 1))+`,"method":"cash"}`
			}
			if action == "reverse" {
				path = "payments/" + v.Payments[0].ID + "/reverse"
			}
			a := w.act(ctx, v, path, body)
			var code, field string
			if n, _ := fmt.Sscan(result, &code, &field); n == 2 {
				a.is(422, code, field)
				result = "same"
			}
			got := w.invoice(ctx, v.ID)
			if result == "same" && (got.Status != v.Status || got.Version != v.Version) || result != "same" && (got.Status != result || got.Version != v.Version+1) {
				t.Errorf("%s, %s: %s, version %d → %d\n%s", state, action, got.Status, v.Version, got.Version, a.Body)
			}
			w.invoiceTypes(ctx, v.ID)
		}
	}
}

// TestFrozenInvoiceFields checks that a frozen field is refused with any value, and that the others can always be changed.
func TestFrozenInvoiceFields(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	other := w.create(ctx, "")
	for _, state := range []string{"open", "partially_paid", "paid", "uncollectible", "void"} {
		v := w.invoiceIn(ctx, state)
		path := "/invoices/" + v.ID
		for field, value := range map[string]string{
			"customer_id": str(other.ID), "booking_id": `null`, "kind": `"full"`, "line_items": `[` + line(100) + `]`, "billing_address": `null`,
		} {
			w.do(ctx, "PATCH", path, `{"notes":"x",`+str(field)+`:`+value+`}`).is(422, "invalid_request", field)
			w.do(ctx, "PATCH", path, `{`+str(field)+`:`+value+`}`, `If-Match: "77"`).is(412)
		}
		if got := w.do(ctx, "PATCH", path, `{"notes":"x","due_at":"2030-01-01","metadata":{"k":"v"}}`).is(200).invoice(); got.Version != v.Version+1 ||
			deref(got.Notes) != "x" || string(got.Metadata) != `{"k":"v"}` || got.Total != v.Total || deref(got.Number) != deref(v.Number) {
			t.Errorf("%s: %+v", state, got)
		}
		w.invoiceTypes(ctx, v.ID)
	}
}

func TestInvoiceWithNothingDue(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 0)
	if v.Status != "paid" || v.PaidAt == nil || v.OpenedAt == nil || v.Number == nil {
		t.Errorf("opened with nothing due: %+v", v)
	}
	if again := w.act(ctx, v, "open").is(200).invoice(); again.Version != v.Version {
		t.Errorf("opened again: %+v", again)
	}
	if got := w.invoiceTypes(ctx, v.ID); got != "created paid" {
		t.Errorf("events: %s", got)
	}
}

func TestInvoiceIfMatchAndReplay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.draft(ctx, 100)
	path := "/invoices/" + v.ID
	payment := `{"amount":` + usd(30) + `,"method":"cash"}`
	first := w.do(ctx, "POST", path+"/open", "", `If-Match: "1"`, "Idempotency-Key: o").is(200)
	paid := w.do(ctx, "POST", path+"/record-payment", payment, `If-Match: "2"`, "Idempotency-Key: p").is(200)
	pay := paid.invoice().Payments[0].ID
	reverse := w.do(ctx, "POST", path+"/payments/"+pay+"/reverse", "", `If-Match: "3"`, "Idempotency-Key: r").is(200)
	for _, again := range []struct {
		path, body, key string
		want            response
	}{
		{"/open", "", "o", first},
		{"/record-payment", payment, "p", paid},
		{"/payments/" + pay + "/reverse", "", "r", reverse},
	} {
		etag := header(fmt.Sprintf(`If-Match: "%d"`, again.want.invoice().Version-1))
		if got := w.do(ctx, "POST", path+again.path, again.body, etag, header("Idempotency-Key: "+again.key)).is(200); string(got.Body) != string(again.want.Body) ||
			got.Header.Get("Idempotent-Replayed") == "" {
			t.Errorf("%s: %s", again.path, got.Body)
		}
	}
	for _, action := range []string{"/open", "/void", "/mark-uncollectible", "/payments/" + pay + "/reverse"} {
		w.do(ctx, "POST", path+action, "", `If-Match: "1"`).is(412, "version_mismatch")
	}
	w.do(ctx, "POST", path+"/record-payment", payment, `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "PATCH", path, `{"notes":"x"}`, `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "POST", path+"/record-payment", `{"amount":`+usd(31)+`,"method":"cash"}`, "Idempotency-Key: p").is(422, "idempotency_mismatch")
	if got := w.invoiceTypes(ctx, v.ID); got != "created updated* updated* updated*" {
		t.Errorf("events: %s", got)
	}
}

// TestPaymentFields checks that payments are validated by the caller's clock and time zone, and by the invoice's currency.
func TestPaymentFields(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	clock := time.Date(2031, 3, 1, 4, 30, 0, 0, time.UTC) // the last day of February in New York
	ticking := in(ctx, func(c *caller.Caller) { c.Clock = &clock })
	for field, body := range map[string]string{
		"amount":          `"method":"cash"`,
		"amount.amount":   `"amount":{"amount":0,"currency":"USD"},"method":"cash"`,
		"amount.currency": `"amount":{"amount":1,"currency":"EUR"},"method":"cash"`,
		"method":          `"amount":` + usd(1) + `,"method":"card"`,
		"paid_at":         `"amount":` + usd(1) + `,"method":"cash","paid_at":"2031-03-01T04:30:00.000001Z"`,
		"reference":       `"amount":` + usd(1) + `,"method":"cash","reference":` + str(fmt.Sprintf("%0201d", 1)),
	} {
		w.do(ticking, "POST", "/invoices/"+v.ID+"/record-payment", "{"+body+"}").is(422, "invalid_request", field)
	}
	pay := func(paidAt string) response {
		return w.do(ticking, "POST", "/invoices/"+v.ID+"/record-payment", `{"amount":`+usd(1)+`,"method":"cash","paid_at":`+paidAt+`}`)
	}
	pay(`"2031-03-01"`).is(422, "invalid_request", "paid_at") // the day has not begun in New York
	pay(`"2031-02-29"`).is(422, "invalid_request", "paid_at")
	pay(`"1899-12-31"`).is(422, "invalid_request", "paid_at")
	pay(`"2031-02-28"`).is(200)
	pay(`"2031-03-01T04:30:00Z"`).is(200)
	if got := pay(`null`).is(200).invoice().Payments[2]; !got.PaidAt.Equal(clock) {
		t.Errorf("paid at %s", got.PaidAt)
	}
	w.do(ticking, "POST", "/invoices/"+v.ID+"/payments/"+ids.New[ids.CustomerPrefix]().String()+"/reverse", "").is(404, "invoice_payment_not_found")
	w.do(ticking, "POST", "/invoices/"+v.ID+"/payments/x/reverse", "").is(404, "invoice_payment_not_found")
	elsewhere := w.pay(ctx, w.open(ctx, 5), 5).is(200).invoice()
	w.do(ticking, "POST", "/invoices/"+v.ID+"/payments/"+elsewhere.Payments[0].ID+"/reverse", "").is(404, "invoice_payment_not_found")
	w.Exec(`update invoice_payments set source = 'gateway', method = 'card' where amount = 5`)
	w.act(ctx, elsewhere, "payments/"+elsewhere.Payments[0].ID+"/reverse").is(422, "invalid_status_transition")
}

func TestMostPayments(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 1000)
	for range 100 {
		w.pay(ctx, v, 1).is(200)
	}
	w.pay(ctx, v, 1).is(422, "limit_reached", "amount")
	w.act(ctx, v, "payments/"+w.invoice(ctx, v.ID).Payments[99].ID+"/reverse").is(200)
	w.pay(ctx, v, 1).is(422, "limit_reached", "amount") // reversed payments count
	if got := w.invoice(ctx, v.ID); len(got.Payments) != 100 || got.AmountPaid.Amount != 99 {
		t.Errorf("%d payments, %d paid", len(got.Payments), got.AmountPaid.Amount)
	}
}

// TestOverdue checks that overdue depends on the operator's day and the caller's clock, in the response and in the filter.
func TestOverdue(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const due = `"due_at":"2031-03-01T12:00:00Z"`
	open, draft := w.open(ctx, 100, due), w.draft(ctx, 100, due)
	part := w.pay(ctx, w.open(ctx, 100, due), 1).is(200).invoice()
	paid := w.pay(ctx, w.open(ctx, 100, due), 100).is(200).invoice()
	never := w.open(ctx, 100)
	for now, want := range map[string]bool{
		"2031-03-01T13:00:00Z": false, "2031-03-02T04:59:59Z": false, "2031-03-02T05:00:00Z": true, "2032-01-01T00:00:00Z": true,
	} {
		clock, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		ticking := in(ctx, func(c *caller.Caller) { c.Clock = &clock })
		late := []string{part.ID, open.ID}
		others := []string{never.ID, paid.ID, draft.ID}
		if !want {
			late, others = nil, []string{never.ID, paid.ID, part.ID, draft.ID, open.ID}
		}
		for _, v := range []invoice{open, part} {
			if got := w.invoice(ticking, v.ID); got.Overdue != want {
				t.Errorf("%s: overdue %v", now, got.Overdue)
			}
		}
		if w.invoice(ticking, draft.ID).Overdue || w.invoice(ticking, paid.ID).Overdue || w.invoice(ticking, never.ID).Overdue {
			t.Errorf("%s: what owes nothing is overdue", now)
		}
		w.invoicesAre(ticking, "overdue=true", late...)
		w.invoicesAre(ticking, "overdue=false", others...)
	}
	if got := w.invoiceTypes(ctx, open.ID); got != "created updated*" {
		t.Errorf("events: %s", got)
	}
}
