package api_test

import (
	"context"
	"fmt"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// taxedDocument is what a document shows of its taxes.
type taxedDocument struct {
	ID        string
	Number    *string
	Total     amount `json:"total_amount"`
	Tax       amount `json:"tax_amount"`
	Behavior  string `json:"tax_behavior"`
	LineItems []struct {
		Description string
		Amount      amount
		UnitAmount  amount `json:"unit_amount"`
		TaxAmount   amount `json:"tax_amount"`
		Taxes       []struct{ Name, Rate string }
	} `json:"line_items"`
	Breakdown []struct {
		Name, Rate string
		Taxable    amount `json:"taxable_amount"`
		Tax        amount `json:"tax_amount"`
	} `json:"tax_breakdown"`
}

// rows returns the breakdown as texts.
func (d taxedDocument) rows() (out []string) {
	for _, r := range d.Breakdown {
		out = append(out, fmt.Sprintf("%s %s: %d on %d", r.Name, r.Rate, r.Tax.Amount, r.Taxable.Amount))
	}
	return out
}

func (w *world) taxes(ctx context.Context, path string) taxedDocument {
	w.T.Helper()
	return decode[taxedDocument](w.do(ctx, "GET", path, "").is(200))
}

// TestDepositAndBalance quotes two lines with different taxes, takes the deposit, invoices the rest and credits it. Each document adds
// up to the quote.
func TestDepositAndBalance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines, behavior  string
		deposit          int64
		paid, rest, sold []string // the breakdowns of the deposit, the balance and the quote
		deposits, total  int64    // lines of the deposit; total of the quote
	}{
		"Québec": {
			`{"description":"Tour","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"},"taxes":[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]}`,
			"exclusive", 3000,
			[]string{"GST 5: 130 on 2610", "QST 9.975: 260 on 2610"},
			[]string{"GST 5: 370 on 7390", "QST 9.975: 738 on 7390"},
			[]string{"GST 5: 500 on 10000", "QST 9.975: 998 on 10000"},
			1, 11498,
		},
		"Munich": {
			`{"description":"Tour","quantity":1,"unit_amount":{"amount":11900,"currency":"USD"},"taxes":[{"name":"USt","rate":"19"}]},` +
				`{"description":"Book","quantity":1,"unit_amount":{"amount":1070,"currency":"USD"},"taxes":[{"name":"USt","rate":"7"}]}`,
			"inclusive", 5000,
			[]string{"USt 19: 733 on 3855", "USt 7: 27 on 385"},
			[]string{"USt 19: 1167 on 6145", "USt 7: 43 on 615"},
			[]string{"USt 19: 1900 on 10000", "USt 7: 70 on 1000"},
			2, 12970,
		},
	} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		customer := w.create(ctx, "").ID
		q := w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":"2031-05-01","tax_behavior":%q,"line_items":[%s],"deposit_amount":%s}`,
			customer, c.behavior, c.lines, usd(c.deposit))).is(201).quote()
		w.onQuote(ctx, q.ID, "send").is(200)
		accepted := w.onQuote(ctx, q.ID, "accept").is(200).quote()
		quote, deposit := w.taxes(ctx, "/quotes/"+q.ID), w.taxes(ctx, "/invoices/"+accepted.InvoiceIDs[0])
		if fmt.Sprint(quote.rows()) != fmt.Sprint(c.sold) || quote.Total.Amount != c.total {
			t.Fatalf("%s: the quote is %v, %d", name, quote.rows(), quote.Total.Amount)
		}
		if deposit.Behavior != "inclusive" || deposit.Total.Amount != c.deposit || fmt.Sprint(deposit.rows()) != fmt.Sprint(c.paid) || int64(len(deposit.LineItems)) != c.deposits {
			t.Errorf("%s: the deposit is %+v, %v", name, deposit, deposit.rows())
		}
		v := w.invoicing(ctx, `"kind":"balance"`, `"customer_id":`+str(customer), `"booking_id":`+str(deref(accepted.BookingID))).is(201).invoice()
		balance := w.taxes(ctx, "/invoices/"+v.ID)
		last := balance.LineItems[len(balance.LineItems)-1]
		if balance.Behavior != c.behavior || balance.Total.Amount != c.total-c.deposit || fmt.Sprint(balance.rows()) != fmt.Sprint(c.rest) ||
			len(balance.LineItems) != len(quote.LineItems)+1 || last.UnitAmount.Amount >= 0 || last.TaxAmount.Amount != -deposit.Tax.Amount || len(last.Taxes) != len(c.paid) {
			t.Errorf("%s: the balance is %+v", name, balance)
		}
		w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"discount_amount_total":`+usd(1)+`}`).is(422, "invalid_request", "line_items")
		w.act(ctx, v, "open").is(200)
		if again := w.taxes(ctx, "/invoices/"+v.ID); fmt.Sprint(again.rows()) != fmt.Sprint(c.rest) {
			t.Errorf("%s: the opened balance is %v", name, again.rows())
		}
		w.do(ctx, "GET", "/invoices/"+v.ID+"/pdf", "").pdf()
		note := w.credit(ctx, v, `{}`).is(201).note()
		if credited := w.taxes(ctx, "/credit-notes/"+note.ID); fmt.Sprint(credited.rows()) != fmt.Sprint(c.rest) {
			t.Errorf("%s: the credit note is %v", name, credited.rows())
		}
		w.do(ctx, "GET", "/credit-notes/"+note.ID+"/pdf", "").pdf()
		again := w.invoicing(ctx, `"kind":"balance"`, `"customer_id":`+str(customer), `"booking_id":`+str(deref(accepted.BookingID))).is(201).invoice() // in its place
		if second := w.taxes(ctx, "/invoices/"+again.ID); fmt.Sprint(second.rows()) != fmt.Sprint(c.rest) || len(second.LineItems) != len(balance.LineItems) {
			t.Errorf("%s: the second balance is %+v", name, second)
		}
	}
}

// TestCreditTaxes checks how an amount is spread over the taxes of an invoice, and which taxes lines can have.
func TestCreditTaxes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	line := func(minor int64, taxes string) string {
		return fmt.Sprintf(`{"description":"d","quantity":1,"unit_amount":%s,"taxes":%s}`, usd(minor), taxes)
	}
	const vat, low = `[{"name":"VAT","rate":"19"}]`, `[{"name":"VAT","rate":"7"}]`
	v := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"customer_id":%q,"tax_behavior":"exclusive","line_items":[%s,%s]}`,
		w.create(ctx, "").ID, line(10000, vat), line(10000, low))).is(201).invoice()
	w.act(ctx, v, "open").is(200)
	for _, c := range []struct {
		body  string
		total int64
		rows  string
	}{
		{`{"amount":` + usd(2260) + `}`, 2260, "[VAT 19: 190 on 1000 VAT 7: 70 on 1000]"},
		{`{"line_items":[` + line(1000, low) + `]}`, 1070, "[VAT 7: 70 on 1000]"},
		{`{}`, 19270, "[VAT 19: 1710 on 9000 VAT 7: 560 on 8000]"},
	} {
		n := w.credit(ctx, v, c.body).is(201).note()
		if got := w.taxes(ctx, "/credit-notes/"+n.ID); fmt.Sprint(got.rows()) != c.rows || got.Total.Amount != c.total {
			t.Errorf("%s: %v, %d", c.body, got.rows(), got.Total.Amount)
		}
	}
	w.has(ctx, v, "credited", 0, 22600, 0)
	other := w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"customer_id":%q,"line_items":[%s,%s]}`, v.CustomerID, line(100, vat), line(100, low))).is(201).invoice()
	w.act(ctx, other, "open").is(200)
	w.credit(ctx, other, `{"line_items":[`+line(10, `[{"name":"VAT","rate":"20"}]`)+`]}`).is(422, "invalid_request", "line_items.0.taxes")
	w.credit(ctx, other, `{"line_items":[{"description":"d","quantity":1,"unit_amount":`+usd(10)+`}]}`).is(422, "invalid_request", "line_items.0.taxes")
	w.credit(ctx, other, `{"line_items":[`+line(101, low)+`]}`).is(422, "invalid_request", "line_items")
}

// TestOnePackageCostsTheSame quotes a package where taxes are added to prices, and invoices a booking of it. Both come to its gross
// amount, regardless of the current defaults.
func TestOnePackageCostsTheSame(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	customer := w.create(ctx, "")
	sales := []money.Tax{{Name: "Sales tax", Rate: 88_750}}
	w.tenants.Info.Defaults = domain.TaxDefaults{Behavior: domain.TaxInclusive, Taxes: []money.Tax{{Name: "Other", Rate: 10_000}}}
	const taxed = "[Sales tax 8.875: 399 on 4500]"
	pkg := w.bookings.AddPackage(domain.PackagePrice{
		Name: "Tour", Service: ids.New[ids.ServicePrefix](), Total: usdOf(4500), Deposit: usdOf(2450),
		Defaults: domain.TaxDefaults{Behavior: domain.TaxExclusive, Taxes: sales},
	})
	q := w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,"event_date":"2031-05-01","package_id":%q}`, customer.ID, pkg)).is(201).quote()
	quote := w.taxes(ctx, "/quotes/"+q.ID)
	if quote.Behavior != "exclusive" || quote.Total.Amount != 4899 || q.Deposit.Amount != 2450 || fmt.Sprint(quote.rows()) != taxed {
		t.Errorf("the quote is %+v, %v", quote, quote.rows())
	}
	w.onQuote(ctx, q.ID, "send").is(200)
	w.onQuote(ctx, q.ID, "accept").is(200)
	if in := w.bookings.Requests()[0]; in.Total.Minor != 4899 || len(in.Taxes) != 1 || in.Taxes[0] != (money.TaxRow{Tax: sales[0], Taxable: 4500, Amount: 399}) {
		t.Errorf("booked as %+v", in)
	}

	b := w.bookings.AddBooking(customerID(t, customer), usdOf(4899))
	b.Price = &domain.BookingPrice{Minor: 4500, Behavior: domain.TaxExclusive, Taxes: sales}
	b = w.bookings.ChangeBooking(b)
	balance := w.taxes(ctx, "/invoices/"+w.invoicing(ctx, `"kind":"balance"`, `"booking_id":`+str(b.ID.String())).is(201).invoice().ID)
	if balance.Behavior != "exclusive" || balance.Total.Amount != 4899 || fmt.Sprint(balance.rows()) != taxed {
		t.Errorf("the balance is %+v, %v", balance, balance.rows())
	}

	// The lines are written from the newest price, even if the booking changes between the lookup and the transaction.
	other := w.bookings.AddBooking(customerID(t, customer), usdOf(11900))
	moved := other
	w.bookings.After = func(context.Context, string) error {
		if w.bookings.After = nil; moved.Version > other.Version {
			return nil
		}
		moved.Total.Minor, moved.Price = 5000, &domain.BookingPrice{Minor: 5000, Behavior: domain.TaxInclusive}
		moved = w.bookings.ChangeBooking(moved)
		return w.DB.App.Tx(ctx, func(_ context.Context, tx pg.Tx) error { store.PutBooking(tx, moved); return nil })
	}
	if v := w.invoicing(ctx, `"kind":"balance"`, `"booking_id":`+str(other.ID.String())).is(201).invoice(); v.Total.Amount != 5000 {
		t.Errorf("the balance is %d", v.Total.Amount)
	}
}
