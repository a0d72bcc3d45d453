package domain

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// creditStep is a credit note of a sequence: by amount, or by lines if it has any. Its numbers select among what is left when the step
// runs, so that a sequence without some of its steps is a valid sequence too.
type creditStep struct {
	amount int64 // of the part of the total that is left, in thousandths
	lines  []creditLine
}

// creditLine is a line of a credit note. Its set of taxes is one of the invoice, and its amount is a part of what is left of the set.
type creditLine struct {
	set, quantity  int
	part           int64 // in thousandths
	more, discount int64 // in units and basis points
}

// creditSequence is an invoice with the credit notes that a client requests.
type creditSequence struct {
	invoice Invoice
	steps   []creditStep
}

// drawInvoice draws an opened invoice: all lines of a quote, or a balance that deducts deposits and invoices with other lines. The total
// is positive.
func drawInvoice(t *rapid.T) Invoice {
	q := drawQuote(t)
	v := Invoice{Kind: FullInvoice, Lines: q.Lines, Totals: q.Totals}
	if rapid.Bool().Draw(t, "balance") {
		v = drawBalance(t, q, v)
	}
	if v.Total.Minor <= 0 {
		v.Lines = []Line{{Description: "l", Quantity: 1, UnitAmount: 77}}
		v.Lines, v.Totals, _ = Price(v.Lines, v.PriceTerms)
	}
	return opened(v, 9)
}

// drawBalance returns a balance of the quote, or v if nothing is left to invoice.
func drawBalance(t *rapid.T, q Quote, v Invoice) Invoice {
	code, step := q.Total.Currency, money.Step(q.Total.Currency)
	booking := Booking{ID: ids.New[ids.BookingPrefix](), Number: "B-1", Total: q.Total}
	refs := InvoiceRefs{Booking: &booking, Customer: &Customer{ID: ids.New[ids.CustomerPrefix]()}, Balance: Balance{Quote: &q}, Wording: plainWording{}}
	for n := range rapid.IntRange(1, 3).Draw(t, "earlier") {
		left := refs.Balance.Left(booking)
		if left < 2*step {
			break
		}
		earlier := Invoice{Kind: FullInvoice}
		if rapid.Bool().Draw(t, "deposit") {
			var err error
			source := InvoiceSource{Number: q.Number, Lines: q.Lines, Totals: q.Totals, Deposit: drawPart(t, left/2, code, "deposit"), Wording: plainWording{}}
			if earlier, err = InvoiceOf(ids.New[ids.InvoicePrefix](), source, booking); err != nil {
				t.Fatal(err)
			}
		} else {
			other := rapid.Custom(drawQuote).Draw(t, "other")
			if other.Total.Currency != code || other.Total.Minor >= left {
				continue
			}
			earlier.Lines, earlier.Totals = other.Lines, other.Totals
		}
		refs.Balance.Deducted = append(refs.Balance.Deducted, opened(earlier, n+1))
	}
	in := InvoiceInput{BookingID: patch.Value(booking.ID.String()), CustomerID: patch.Value("cu"), Kind: patch.Value(BalanceInvoice)}
	balance, err := NewInvoice(ids.New[ids.InvoicePrefix](), in, refs, DocumentContext{Currency: code, Zone: time.UTC, Now: time.Now()})
	if err != nil {
		return v
	}
	return balance
}

func drawCreditSequence(t *rapid.T) creditSequence {
	part := rapid.OneOf(rapid.SampledFrom([]int64{0, 333, 500, 999, 1000, 1000, 1001}), rapid.Int64Range(0, 1100))
	line := rapid.Custom(func(t *rapid.T) creditLine {
		return creditLine{
			set: rapid.IntRange(0, 9).Draw(t, "set"), quantity: rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "quantity"), part: part.Draw(t, "part"),
			more:     rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(t, "more"),
			discount: rapid.SampledFrom([]int64{0, 0, 0, 1000, 3333}).Draw(t, "discount"),
		}
	})
	step := rapid.Custom(func(t *rapid.T) creditStep {
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return creditStep{amount: part.Draw(t, "amount")}
		}
		return creditStep{lines: rapid.SliceOfN(line, 1, 4).Draw(t, "lines")}
	})
	return creditSequence{invoice: drawInvoice(t), steps: rapid.SliceOfN(step, 1, 6).Draw(t, "steps")}
}

// input returns the body of the credit note. exact reports whether it must be created, because it credits a part of what is left.
func (s creditStep) input(v Invoice, left Parts) (in CreditNoteInput, exact bool) {
	code, unit := v.Total.Currency, money.Step(v.Total.Currency)
	in = CreditNoteInput{Way: RefundNone, Wording: plainWording{}}
	if s.lines == nil {
		rest := v.Uncredited().Minor / unit
		amount := money.Amount{Minor: max(1, rest*s.amount/1000) * unit, Currency: code}
		in.Amount = &amount
		return in, amount.Minor <= v.Uncredited().Minor
	}
	lines := make([]LineInput, len(s.lines))
	for i, l := range s.lines {
		of := left[l.set%len(left)]
		amount := of.Net
		if v.Behavior == TaxInclusive {
			amount = of.Gross()
		}
		taxes := make([]money.TaxInput, len(of.Taxes))
		for n, tax := range of.Taxes {
			taxes[n] = money.TaxInput{Name: tax.Name, Rate: tax.Rate.String()}
		}
		if l.more < 0 {
			slices.Reverse(taxes)
		}
		lines[i] = LineInput{Description: "l", Quantity: int64(l.quantity), Taxes: &taxes, UnitAmount: money.Amount{
			Minor: max(0, amount*l.part/1000/int64(l.quantity)+l.more), Currency: code,
		}}
		if l.discount > 0 {
			lines[i].DiscountBps = &l.discount
		}
	}
	in.Lines = patch.Value(lines)
	return in, false
}

// wrongNote returns what does not add up after a credit note of an invoice was created. n is the note, v the invoice before it, and next
// the invoice after it.
func wrongNote(v, next Invoice, n CreditNote) string {
	before, err := v.left()
	after, err2 := next.left()
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	parts, lines := before.plus(-1, after), n.Rounding.Minor
	left, err := v.uncreditedAfter(after)
	rest, rounded := next.Uncredited().Minor, money.Step(v.Total.Currency) > 1
	others, err3 := v.roundingOfOthers()
	many := others != 0
	for _, l := range n.Lines {
		lines += l.Amounts.Net()
		if v.Behavior == TaxExclusive && n.Behavior == TaxExclusive {
			lines += l.Amounts.Tax
		}
	}
	sums := map[money.Tax][2]int64{}
	addRows(sums, 1, parts.Rows())
	addRows(sums, -1, n.Breakdown)
	for tax, sum := range sums {
		if sum != [2]int64{} {
			return fmt.Sprintf("the row of %v is off by %v", tax, sum)
		}
	}
	switch {
	case n.Total.Minor <= 0 || next.Credited != v.Credited+n.Total.Minor || next.Credited > v.Total.Minor:
		return fmt.Sprintf("%v is credited after %d of %v; the invoice has %d", n.Total, v.Credited, v.Total, next.Credited)
	case parts.Gross()+n.Rounding.Minor != n.Total.Minor || lines != n.Total.Minor || n.Rounding.Minor != 0 && !rounded || n.Total.Minor%money.Step(n.Total.Currency) != 0:
		return fmt.Sprintf("the total is %d with a rounding of %d, the lines add up to %d, and the sets of taxes to %d", n.Total.Minor, n.Rounding.Minor, lines, parts.Gross())
	case err != nil || err3 != nil || rest > left && (!many || !after.empty()) || rest < left && !many || rest == 0 && !after.empty():
		return fmt.Sprintf("%d is left, %d of the sets of taxes %+v, %v", rest, left, after, err)
	}
	return ""
}

// wrong runs the sequence, then credits the rest. It returns what does not add up, or "".
func (s creditSequence) wrong() string {
	v, at, rounding := s.invoice, DocumentContext{Currency: s.invoice.Total.Currency, Zone: time.UTC, Now: time.Now()}, s.invoice.Rounding.Minor
	for i := range len(s.steps) + 1 {
		left, err := v.left()
		if err != nil {
			return err.Error()
		}
		in, exact := CreditNoteInput{Way: RefundNone, Wording: plainWording{}}, true
		if i < len(s.steps) {
			in, exact = s.steps[i].input(v, left)
		}
		if v.Uncredited().IsZero() {
			break
		}
		next, n, err := v.Credit(ids.New[ids.CreditNotePrefix](), in, at, anyVersion{})
		if refused := (*apperr.Error)(nil); errors.As(err, &refused) && refused.Kind == apperr.Invalid && !exact {
			continue
		}
		if err != nil {
			return fmt.Sprintf("note %d: %v", i+1, err)
		}
		if wrong := wrongNote(v, next, n); wrong != "" {
			return fmt.Sprintf("note %d: %s", i+1, wrong)
		}
		v = next
		rounding -= n.Rounding.Minor
	}
	if !v.Uncredited().IsZero() || v.Status != InvoiceCredited || rounding != 0 {
		return fmt.Sprintf("%v is left, with a rounding of %d; the invoice is %s", v.Uncredited(), rounding, v.Status)
	}
	return ""
}

// shortest removes the steps that are not necessary for the failure.
func (s creditSequence) shortest() creditSequence {
	for i := len(s.steps) - 1; i >= 0; i-- {
		less := s
		less.steps = slices.Delete(slices.Clone(s.steps), i, i+1)
		if less.wrong() != "" {
			s = less
		}
	}
	return s
}

// TestSequencesOfCreditNotes runs random sequences of credit notes by amount and by lines, of invoices and balances with several sets of
// up to three taxes. After each note, its lines, its breakdown and its total add up, and what is left of the invoice is what is left of
// its sets of taxes. At last, a note credits exactly the rest.
func TestSequencesOfCreditNotes(t *testing.T) {
	t.Parallel()
	sequences := 4000
	if os.Getenv("TEST_SCALE") == "full" {
		sequences = 400_000
	}
	var g sync.WaitGroup
	var wrong atomic.Int64
	draw := rapid.Custom(drawCreditSequence)
	const workers = 2
	for w := range workers {
		g.Go(func() {
			for seed := w; seed < sequences; seed += workers {
				s := draw.Example(seed)
				if s.wrong() == "" {
					continue
				}
				if wrong.Add(1) == 1 {
					s = s.shortest()
					t.Errorf("seed %d: after %+v of %+v %+v: %s", seed, s.steps, s.invoice.Totals, s.invoice.Lines, s.wrong())
				}
			}
		})
	}
	g.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d sequences do not add up", wrong.Load(), sequences)
	}
}
