package domain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// anyVersion is a precondition that always holds.
type anyVersion struct{}

// Check implements patch.Precondition.
func (anyVersion) Check(int64) error { return nil }

// drawQuote draws an accepted quote with lines of several sets of taxes.
func drawQuote(t *rapid.T) Quote {
	code := rapid.SampledFrom([]string{"JPY", "USD", "KWD"}).Draw(t, "currency")
	pool := []money.Tax{{Name: "GST", Rate: 50_000}, {Name: "QST", Rate: 99_750}, {Name: "VAT", Rate: 190_000}, {Name: "VAT", Rate: 70_000}, {Name: "City", Rate: 88_750}}
	sets := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 3, rapid.ID[money.Tax]), 1, 4).Draw(t, "sets")
	lines := make([]Line, rapid.IntRange(1, 8).Draw(t, "lines"))
	for i := range lines {
		lines[i] = Line{
			Description: "l", Quantity: rapid.Int64Range(1, 3).Draw(t, "quantity"), UnitAmount: rapid.Int64Range(0, 2000).Draw(t, "unit"),
			DiscountBps: rapid.SampledFrom([]int64{0, 0, 1000, 3333}).Draw(t, "discount"), Taxes: rapid.SampledFrom(sets).Draw(t, "taxes"),
		}
	}
	terms := PriceTerms{Behavior: rapid.SampledFrom([]TaxBehavior{TaxExclusive, TaxInclusive}).Draw(t, "behavior"), DiscountTotal: money.Amount{Currency: code}}
	q := Quote{Number: "Q-1"}
	var err error
	if q.Lines, q.Totals, err = Price(lines, terms); err != nil {
		t.Fatal(err)
	}
	terms.DiscountTotal.Minor = (q.Subtotal.Minor - q.Discount.Minor) * rapid.SampledFrom([]int64{0, 0, 15, 50}).Draw(t, "discount total") / 100
	if q.Lines, q.Totals, err = Price(lines, terms); err != nil {
		t.Fatal(err)
	}
	return q
}

// drawPart draws an amount from 1 unit to most.
func drawPart(t *rapid.T, most int64, code, name string) int64 {
	step := money.Step(code)
	return rapid.Int64Range(1, most/step).Draw(t, name) * step
}

// opened returns the invoice as an open one.
func opened(v Invoice, n int) Invoice {
	number, now := fmt.Sprintf("INV-%06d", n), time.Date(2030, 1, n+1, 0, 0, 0, 0, time.UTC)
	v.Status, v.Number, v.OpenedAt = InvoiceOpen, &number, &now
	return v
}

// addRows adds the rows of a breakdown to the sums by tax, as taxable amount and tax.
func addRows(sums map[money.Tax][2]int64, sign int64, rows []money.TaxRow) {
	for _, r := range rows {
		was := sums[r.Tax]
		sums[r.Tax] = [2]int64{was[0] + sign*r.Taxable, was[1] + sign*r.Amount}
	}
}

// checkDocument checks that the lines and the breakdown of a document add up to its totals.
func checkDocument(t *rapid.T, name string, lines []Line, totals Totals) {
	sums := Sum(lines, totals.PriceTerms, totals.Breakdown)
	if sums.Total.Minor+totals.Rounding.Minor != totals.Total.Minor || sums.Tax != totals.Tax || totals.Total.Minor%money.Step(totals.Total.Currency) != 0 {
		t.Fatalf("%s: the lines add up to %+v, the totals are %+v", name, sums, totals)
	}
	var tax int64
	for _, r := range totals.Breakdown {
		tax += r.Amount
	}
	if tax != totals.Tax.Minor {
		t.Fatalf("%s: the breakdown adds up to %d, the tax is %d", name, tax, totals.Tax.Minor)
	}
}

// TestInvoicesOfABookingAddUp draws quotes, deposits, invoices with the client's own lines, and credit notes, each opened in any order,
// and then the balance. Over all of them, each row of the breakdown adds up to the quote's, and so does the total.
func TestInvoicesOfABookingAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuote(t)
		code, left := q.Total.Currency, q.Total.Minor
		booking := Booking{ID: ids.New[ids.BookingPrefix](), Number: "B-1", Total: q.Total}
		at := DocumentContext{Currency: code, Zone: time.UTC, Now: time.Now()}
		refs := InvoiceRefs{Booking: &booking, Customer: &Customer{ID: ids.New[ids.CustomerPrefix]()}, Balance: Balance{Quote: &q}, Wording: plainWording{}}
		var notes []CreditNote
		for n := range rapid.IntRange(0, 4).Draw(t, "deposits") {
			if left < 2*money.Step(code) {
				break
			}
			source := InvoiceSource{Number: q.Number, Lines: q.Lines, Totals: q.Totals, Deposit: drawPart(t, left/2, code, "deposit"), Wording: plainWording{}}
			v, err := InvoiceOf(ids.New[ids.InvoicePrefix](), source, booking)
			if err != nil {
				t.Fatal(err)
			}
			if v.Total.Minor != source.Deposit || v.Kind != DepositInvoice || v.Behavior != TaxInclusive {
				t.Fatalf("a deposit of %d has the total %d", source.Deposit, v.Total.Minor)
			}
			checkDocument(t, "deposit", v.Lines, v.Totals)
			v = opened(v, n+1)
			if rapid.Bool().Draw(t, "credited") {
				amount := money.Amount{Minor: drawPart(t, v.Total.Minor, code, "credit"), Currency: code}
				var note CreditNote
				if v, note, err = v.Credit(ids.New[ids.CreditNotePrefix](), CreditNoteInput{Amount: &amount, Way: RefundNone, Wording: plainWording{}}, at, anyVersion{}); err != nil {
					t.Fatal(err)
				}
				notes = append(notes, note)
			}
			left -= v.Uncredited().Minor
			refs.Balance.Deducted = append(refs.Balance.Deducted, v)
		}
		in := InvoiceInput{BookingID: patch.Value(booking.ID.String()), CustomerID: patch.Value("cu"), Kind: patch.Value(BalanceInvoice)}
		v, err := NewInvoice(ids.New[ids.InvoicePrefix](), in, refs, at)
		if left == 0 {
			if err == nil {
				t.Fatal("a balance of nothing")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkDocument(t, "balance", v.Lines, v.Totals)
		if v.Total.Minor != left || v.Behavior != q.Behavior {
			t.Fatalf("the balance is %d, %d is left", v.Total.Minor, left)
		}
		sums := map[money.Tax][2]int64{}
		addRows(sums, -1, q.Breakdown)
		addRows(sums, 1, v.Breakdown)
		for _, d := range refs.Balance.Deducted {
			addRows(sums, 1, d.Breakdown)
		}
		for _, n := range notes {
			addRows(sums, -1, n.Breakdown)
		}
		for tax, sum := range sums {
			if sum != [2]int64{} {
				t.Fatalf("%v is off by %v", tax, sum)
			}
		}
		// The balance can be credited like any invoice.
		creditInParts(t, opened(v, 9), at)
	})
}

// creditInParts credits an invoice by random amounts, and the rest at last. No tax is ever credited beyond the invoice, and in the end
// each is credited exactly.
func creditInParts(t *rapid.T, v Invoice, at DocumentContext) {
	code, sums := v.Total.Currency, map[money.Tax][2]int64{}
	addRows(sums, -1, v.Breakdown)
	for range rapid.IntRange(0, 5).Draw(t, "notes") {
		rest := v.Uncredited().Minor
		if rest < 2*money.Step(code) {
			break
		}
		amount := money.Amount{Minor: drawPart(t, rest-money.Step(code), code, "amount"), Currency: code}
		v = credited(t, v, CreditNoteInput{Amount: &amount, Way: RefundNone, Wording: plainWording{}}, at, sums)
	}
	v = credited(t, v, CreditNoteInput{Way: RefundNone, Wording: plainWording{}}, at, sums)
	for tax, sum := range sums {
		if sum != [2]int64{} {
			t.Fatalf("%v is credited, off by %v", tax, sum)
		}
	}
	if v.Status != InvoiceCredited || !v.Due().IsZero() {
		t.Fatalf("%s, due %v", v.Status, v.Due())
	}
}

// credited credits an invoice and adds the note's rows to the sums.
func credited(t *rapid.T, v Invoice, in CreditNoteInput, at DocumentContext, sums map[money.Tax][2]int64) Invoice {
	before := v.Uncredited().Minor
	v, n, err := v.Credit(ids.New[ids.CreditNotePrefix](), in, at, anyVersion{})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, "credit note", n.Lines, n.Totals)
	if in.Amount != nil && n.Total != *in.Amount || before-v.Uncredited().Minor != n.Total.Minor {
		t.Fatalf("%v credits %v", in.Amount, n.Total)
	}
	if len(n.Lines) == 0 || slices.ContainsFunc(n.Lines, func(l Line) bool { return l.Description == "" }) {
		t.Fatalf("lines %+v", n.Lines)
	}
	addRows(sums, 1, n.Breakdown)
	for tax, sum := range sums {
		if v.Kind != BalanceInvoice && (sum[0] > 0 || sum[1] > 0) {
			t.Fatalf("%v is credited too much: %v", tax, sum)
		}
	}
	return v
}

// TestCreditNotesAddUp does creditInParts for invoices with all lines of a quote, also with lines of the client.
func TestCreditNotesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuote(t)
		if q.Total.IsZero() {
			return
		}
		code := q.Total.Currency
		at := DocumentContext{Currency: code, Zone: time.UTC, Now: time.Now()}
		v := opened(Invoice{Kind: FullInvoice, Lines: q.Lines, Totals: q.Totals}, 1)
		sums := map[money.Tax][2]int64{}
		addRows(sums, -1, v.Breakdown)
		for i, l := range q.Lines {
			if l.Amounts.Net() == 0 || !rapid.Bool().Draw(t, "line") {
				continue
			}
			taxes := make([]money.TaxInput, len(l.Taxes))
			for n, tax := range l.Taxes {
				taxes[n] = money.TaxInput{Name: tax.Name, Rate: tax.Rate.String()}
			}
			line := LineInput{Description: "l", Quantity: 1, UnitAmount: money.Amount{Minor: l.Amounts.Net(), Currency: code}, Taxes: &taxes}
			last := i
			next, n, err := v.Credit(ids.New[ids.CreditNotePrefix](), CreditNoteInput{Lines: patch.Value([]LineInput{line}), Way: RefundNone, Wording: plainWording{}}, at, anyVersion{})
			if err != nil && money.Step(code) > 1 { // nothing, or everything, after rounding
				continue
			}
			if err != nil {
				t.Fatalf("line %d: %v", last, err)
			}
			checkDocument(t, "credit note of a line", n.Lines, n.Totals)
			v = next
			addRows(sums, 1, n.Breakdown)
		}
		if v.Uncredited().IsZero() {
			return
		}
		v = credited(t, v, CreditNoteInput{Way: RefundNone, Wording: plainWording{}}, at, sums)
		for tax, sum := range sums {
			if sum != [2]int64{} {
				t.Fatalf("%v is credited, off by %v", tax, sum)
			}
		}
	})
}

// TestBalanceOfAGroup checks that a balance prints the group of a booking as a number times a price, unless the price was rounded.
func TestBalanceOfAGroup(t *testing.T) {
	t.Parallel()
	usd := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }
	for _, tc := range []struct {
		guests   *int
		total    int64
		text     string
		quantity int64
	}{
		{nil, 1000, "Seat", 1},
		{new(1), 1000, "Seat", 1},
		{new(4), 1000, "Seat", 4},
		{new(3), 1000, "Seat × 3", 1},
		{new(10_000), 10_000, "Seat", 10_000},
		{new(20_000), 20_000, "Seat × 20000", 1},
	} {
		lines, totals, err := Balance{}.sold(Booking{Package: "Seat", Guests: tc.guests, Total: usd(tc.total)}, nil, plainWording{})
		if err != nil || len(lines) != 1 || lines[0].Description != tc.text || lines[0].Quantity != tc.quantity || totals.Total != usd(tc.total) {
			t.Errorf("%+v: %+v, %+v, %v", tc, lines, totals, err)
		}
	}
}

// TestOnePackageCostsTheSame checks that the lines of a package come to the gross amount of its booking: in a quote, and in the balance
// of a booking without a quote.
func TestOnePackageCostsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code, behavior := rapid.SampledFrom([]string{"JPY", "USD", "KWD"}).Draw(t, "currency"), rapid.SampledFrom([]TaxBehavior{TaxExclusive, TaxInclusive}).Draw(t, "behavior")
		guests := rapid.OneOf(rapid.Just[*int](nil), rapid.Map(rapid.IntRange(1, 30), func(n int) *int { return &n })).Draw(t, "guests")
		price := rapid.Int64Range(0, 1_000_000_000).Draw(t, "price") * money.Step(code)
		var taxes []money.Tax
		for i := range rapid.IntRange(0, 3).Draw(t, "taxes") {
			taxes = append(taxes, money.Tax{Name: string(rune('A' + i)), Rate: money.Rate(rapid.Int64Range(0, int64(money.MaxRate)).Draw(t, "rate"))})
		}
		one, err := money.Taxes([]money.TaxLine{{Minor: price, Taxes: taxes}}, behavior == TaxInclusive, code) // as bookings prices it
		if err != nil {
			t.Fatal(err)
		}
		gross, err := behavior.Gross(money.Amount{Minor: price, Currency: code}, one.Total()).Rounded()
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, err := Price([]Line{packageLine("Seat", price, guests, taxes)}, PriceTerms{Behavior: behavior, DiscountTotal: money.Amount{Currency: code}})
		if err != nil || quoted.Total != gross || !slices.Equal(quoted.Breakdown, one.Rows) {
			t.Fatalf("quoted %+v, %v; booked %v", quoted, err, gross)
		}
		b := Booking{Package: "Seat", Guests: guests, Total: gross, Price: &BookingPrice{Minor: price, Behavior: behavior, Taxes: taxes}}
		_, invoiced, err := Balance{}.sold(b, []money.Tax{{Name: "Later", Rate: 10_000}}, plainWording{})
		if err != nil || invoiced.Total != gross || invoiced.Behavior != behavior || !slices.Equal(invoiced.Breakdown, one.Rows) {
			t.Fatalf("invoiced %+v, %v; booked %v", invoiced, err, gross)
		}
	})
}

// plainWording returns short texts.
type plainWording struct{}

func (plainWording) DepositLine(quote string) string   { return "Deposit " + quote }
func (plainWording) BookingLine(booking string) string { return "Booking " + booking }

func (plainWording) CreditLine(invoice string) string                  { return "Credit " + invoice }
func (plainWording) DeductionLine(invoice string, _ civil.Date) string { return "Less " + invoice }
