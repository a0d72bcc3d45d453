package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// purse is one booking of a merchant, with the actions of its payers and its operator.
type purse struct {
	merchant
	t         *testing.T
	r         *rand.Rand
	customers *pgx.Conn
	customer  string
	booking   string
	open      []intent // created but not confirmed
	steps     []string
}

// purseInvoice contains the fields of an invoice that these tests read.
type purseInvoice struct {
	ID       string
	Status   string
	Total    minorAmount `json:"total_amount"`
	Paid     minorAmount `json:"amount_paid"`
	Due      minorAmount `json:"amount_due"`
	Payments []struct {
		ID         string
		Amount     minorAmount
		Source     string
		ReversedAt *time.Time `json:"reversed_at"`
	}
}

func (i purseInvoice) awaits() bool {
	return slices.Contains([]string{"open", "partially_paid", "uncollectible"}, i.Status)
}

// purseBooking contains the fields of a booking that these tests read.
type purseBooking struct {
	Status        string
	PaymentStatus string      `json:"payment_status"`
	Total         minorAmount `json:"total_amount"`
	Paid          minorAmount `json:"amount_paid"`
	Refunded      minorAmount `json:"amount_refunded"`
	Due           minorAmount `json:"amount_due"`
	Disputed      bool
}

// purseIntent contains the fields of a payment intent that these tests read.
type purseIntent struct {
	ID, Status         string
	Received, Refunded int64
	Disputed           bool
}

func (p *purse) invoices() []purseInvoice {
	p.t.Helper()
	return read[struct{ Data []purseInvoice }](p.t, p.client, "/invoices?limit=100&booking_id="+p.booking).Data
}

func (p *purse) now() purseBooking {
	p.t.Helper()
	return read[purseBooking](p.t, p.client, "/bookings/"+p.booking)
}

// intents returns the booking's intents in payments, by id.
func (p *purse) intents() map[string]purseIntent {
	p.t.Helper()
	out := map[string]purseIntent{}
	list := read[struct {
		Data []struct {
			ID, Status string
			Received   int64 `json:"amount_received"`
			Refunded   int64 `json:"amount_refunded"`
			Disputed   bool
		}
	}](p.t, p.client, "/payment-intents?limit=100&booking_id="+p.booking).Data
	for _, i := range list {
		out[i.ID] = purseIntent(i)
	}
	return out
}

// held returns the booking's intents at the stand-in, by id.
func (p *purse) held() map[string]purseIntent {
	p.t.Helper()
	var h struct {
		holding

		Disputes []struct {
			Intent string `json:"payment_intent"`
			Status string
		}
	}
	p.control(p.t, http.MethodGet, "accounts/"+p.account+"/snapshot", nil, &h)
	out := map[string]purseIntent{}
	for _, i := range h.Intents {
		if i.Metadata["booking_id"] == p.booking {
			out[i.ID] = purseIntent{ID: i.ID, Status: i.Status, Received: i.Received}
		}
	}
	for _, c := range h.Charges {
		if i, ok := out[c.Intent]; ok && c.Status == "succeeded" {
			i.Refunded += c.Refunded
			out[c.Intent] = i
		}
	}
	for _, d := range h.Disputes {
		if i, ok := out[d.Intent]; ok && (d.Status == "lost" || strings.HasSuffix(d.Status, "needs_response") || strings.HasSuffix(d.Status, "under_review")) {
			i.Disputed = true
			out[d.Intent] = i
		}
	}
	return out
}

// differs describes where the stand-in, payments, bookings, and customers disagree, or which amounts do not add up. It returns ""
// if all data is consistent.
func (p *purse) differs() string {
	p.t.Helper()
	held, shown, b, list := p.held(), p.intents(), p.now(), p.invoices()
	var received, refunded, manual, awaited int64
	disputed := false
	for id, want := range held {
		got := shown[id]
		if got != want {
			return fmt.Sprintf("payments shows %+v, and the stand-in has %+v", got, want)
		}
		received, refunded, disputed = received+want.Received, refunded+want.Refunded, disputed || want.Disputed
	}
	for _, v := range list {
		paid := int64(0)
		for _, one := range v.Payments {
			if one.ReversedAt != nil {
				continue
			}
			paid += one.Amount.Amount
			if one.Source == "manual" {
				manual += one.Amount.Amount
			}
		}
		due := v.Total.Amount - v.Paid.Amount
		if v.Status == "void" {
			due = 0
		}
		if paid != v.Paid.Amount || v.Due.Amount != due || due < 0 {
			return fmt.Sprintf("the invoice %+v does not add up", v)
		}
		if v.awaits() {
			awaited += due
		}
	}
	if len(held) != len(shown) || b.Paid.Amount != received+manual || b.Refunded.Amount != refunded || b.Disputed != disputed ||
		b.Due.Amount != max(0, b.Total.Amount-b.Paid.Amount) {
		return fmt.Sprintf("bookings shows %+v, and %d intents were paid %d, %d refunded, disputed %v, and %d by hand", b, len(held), received, refunded, disputed, manual)
	}
	return p.allocation(held, awaited)
}

// allocation describes which of the booking's charges are allocated incorrectly; "" if none.
func (p *purse) allocation(held map[string]purseIntent, awaited int64) string {
	p.t.Helper()
	found, err := p.customers.Query(p.t.Context(), `select c.id, c.amount, c.refunded, c.unapplied, c.disputed,
			coalesce(sum(p.amount), 0)::bigint, coalesce(sum(p.refunded), 0)::bigint, coalesce(bool_and(p.disputed = c.disputed), true)
		from charges c left join invoice_payments p on p.tenant_id = c.tenant_id and p.livemode = c.livemode and p.charge_id = c.id
		where c.id = any($1) group by c.tenant_id, c.livemode, c.id`, slices.Collect(func(yield func(string) bool) {
		for id := range held {
			if !yield(id) {
				return
			}
		}
	}))
	if err != nil {
		p.t.Fatal(err)
	}
	charges, err := pgx.CollectRows(found, pgx.RowToStructByPos[struct {
		ID                             string
		Amount, Refunded, Unapplied    int64
		Disputed                       bool
		OnInvoices, RefundedOnInvoices int64
		Agree                          bool
	}])
	if err != nil {
		p.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range charges {
		known[c.ID] = true
		free, want := max(0, c.Unapplied-c.Refunded), held[c.ID]
		if c.Amount != want.Received || c.Refunded != want.Refunded || c.Disputed != want.Disputed || !c.Agree ||
			c.OnInvoices-c.RefundedOnInvoices+free != want.Received-want.Refunded || c.OnInvoices+c.Unapplied != c.Amount {
			return fmt.Sprintf("customers has %+v, and the stand-in %+v", c, want)
		}
		if free > 0 && awaited > 0 {
			return fmt.Sprintf("%d of %+v lie on no invoice while %d are awaited", free, c, awaited)
		}
	}
	for id, i := range held {
		if i.Received > 0 && !known[id] {
			return id + " is not known by customers"
		}
	}
	return ""
}

// agree waits until all data is consistent.
func (p *purse) agree() {
	p.t.Helper()
	last := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if last = p.differs(); last == "" {
			return
		}
	}
	p.t.Fatalf("after %v: %s", p.steps, last)
}

// begin creates an intent. owed is the maximum amount of the intent: the amount due for the booking and, if body refers to an
// invoice, on the invoice.
func (p *purse) begin(body string, owed int64) (created intent, ok bool) {
	p.t.Helper()
	a := p.insist(p.t, http.MethodPost, "/payment-intents", body, unique("pay"), http.StatusCreated, http.StatusUnprocessableEntity)
	if a.Status != http.StatusCreated {
		return intent{}, false
	}
	a.decode(p.t, &created)
	if created.Amount > owed {
		p.t.Fatalf("after %v: %s requests %d, and %d are owed", p.steps, body, created.Amount, owed)
	}
	return created, true
}

// card creates an intent for the booking or one of its invoices.
func (p *purse) card() (intent, bool) {
	p.t.Helper()
	b, list := p.now(), p.invoices()
	owed, body := b.Due.Amount, fmt.Sprintf(`{"booking_id":%q`, p.booking)
	if len(list) > 0 && p.r.IntN(2) == 0 {
		v := list[p.r.IntN(len(list))]
		owed, body = min(owed, v.Due.Amount), body+fmt.Sprintf(`,"invoice_id":%q`, v.ID)
	}
	if owed > 0 && p.r.IntN(3) > 0 {
		body += fmt.Sprintf(`,"amount_minor":%d`, max(50, 1+p.r.Int64N(owed)))
	}
	return p.begin(body+"}", owed)
}

// payAndRequestMore confirms an intent and immediately requests more, before the other services can process the payment.
func (p *purse) payAndRequestMore(i intent, method string) {
	p.t.Helper()
	before := p.now()
	p.confirm(p.t, i, method)
	await(p.t, i.ID+" has succeeded", func() bool { return p.intents()[i.ID].Status == "succeeded" })
	owed := max(0, before.Due.Amount-i.Amount)
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 3 {
		all.Go(func() {
			created, ok := p.begin(fmt.Sprintf(`{"booking_id":%q}`, p.booking), owed)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			p.open = append(p.open, created)
		})
	}
	all.Wait()
}

// walk contains the random steps, each as often as its relative frequency.
var walk = strings.Fields(`draft draft balance card card card card refund refund refund cash cash reverse reverse void uncollectible dispute close
	left failing`)

// step executes one step.
func (p *purse) step(kind string) {
	p.t.Helper()
	list := p.invoices()
	pick := func(ok func(purseInvoice) bool) (purseInvoice, bool) {
		var some []purseInvoice
		for _, v := range list {
			if ok(v) {
				some = append(some, v)
			}
		}
		if len(some) == 0 {
			return purseInvoice{}, false
		}
		return some[p.r.IntN(len(some))], true
	}
	act := func(path, body string) {
		p.t.Helper()
		p.insist(p.t, http.MethodPost, path, body, unique("act"), http.StatusOK, http.StatusCreated, http.StatusUnprocessableEntity)
	}
	switch kind {
	case "draft", "balance":
		body := fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"kind":"balance"}`, p.customer, p.booking)
		if kind == "draft" {
			body = fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"line_items":[{"description":"d","quantity":1,"unit_amount":{"amount":%d,"currency":"USD"}}]}`,
				p.customer, p.booking, 1000+p.r.IntN(60_000))
		}
		a := p.insist(p.t, http.MethodPost, "/invoices", body, unique("invoice"), http.StatusCreated, http.StatusUnprocessableEntity)
		if a.Status == http.StatusCreated {
			act("/invoices/"+a.id(p.t)+"/open", "")
		}
	case "card", "failing":
		if i, ok := p.card(); ok {
			p.payAndRequestMore(i, map[string]string{"card": "pm_card_visa", "failing": "pm_card_refundFail"}[kind])
		}
	case "left":
		if len(p.open) > 0 {
			p.tryConfirm(p.open[0], "pm_card_visa")
			p.open = p.open[1:]
		}
	case "refund":
		p.insist(p.t, http.MethodPost, "/refunds", fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d,"reason":"requested_by_customer"}`, p.booking, 1+p.r.IntN(40_000)),
			unique("refund"), http.StatusCreated, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusBadGateway)
	case "cash":
		if v, ok := pick(func(v purseInvoice) bool { return v.awaits() && v.Due.Amount > 0 }); ok {
			act("/invoices/"+v.ID+"/record-payment", fmt.Sprintf(`{"amount":{"amount":%d,"currency":"USD"},"method":"cash"}`, 1+p.r.Int64N(v.Due.Amount)))
		}
	case "reverse":
		for _, v := range list {
			for _, one := range v.Payments {
				if one.Source == "manual" && one.ReversedAt == nil {
					act("/invoices/"+v.ID+"/payments/"+one.ID+"/reverse", "")
					return
				}
			}
		}
	case "void", "uncollectible":
		if v, ok := pick(purseInvoice.awaits); ok {
			act("/invoices/"+v.ID+"/"+map[string]string{"void": "void", "uncollectible": "mark-uncollectible"}[kind], "")
		}
	case "dispute", "close":
		p.dispute(kind)
	case "cancel":
		act("/bookings/"+p.booking+"/cancel", `{}`)
	}
}

// dispute opens a dispute of a charge, or ends one.
func (p *purse) dispute(kind string) {
	p.t.Helper()
	var h struct {
		Charges []struct {
			ID, Status string
			Intent     string `json:"payment_intent"`
			Disputed   bool
			Refunded   int64 `json:"amount_refunded"`
		}
		Disputes []struct {
			ID, Status string
			Intent     string `json:"payment_intent"`
		}
	}
	p.control(p.t, http.MethodGet, "accounts/"+p.account+"/snapshot", nil, &h)
	mine := p.intents()
	for _, c := range h.Charges {
		if _, ok := mine[c.Intent]; ok && kind == "dispute" && c.Status == "succeeded" && !c.Disputed && c.Refunded == 0 {
			p.control(p.t, http.MethodPost, "charges/"+c.ID+"/dispute", map[string]any{}, nil)
			return
		}
	}
	for _, d := range h.Disputes {
		if _, ok := mine[d.Intent]; ok && kind == "close" && strings.HasSuffix(d.Status, "needs_response") {
			p.control(p.t, http.MethodPost, "disputes/"+d.ID+"/close", map[string]any{"outcome": []string{"won", "lost"}[p.r.IntN(2)]}, nil)
			return
		}
	}
}

// TestMoneyAgreesEverywhere runs random sequences of an accepted quote, invoices, payments by card and in cash, reversals, voids,
// successful and failed refunds, disputes, and a cancellation on one booking. It checks that after each step, the stand-in for
// Stripe, payments, bookings, and customers agree. Money that was paid and not refunded is allocated to invoices or unallocated,
// and none is unallocated while an invoice is unpaid. No intent requests more than the amount due, even immediately after a
// payment.
func TestMoneyAgreesEverywhere(t *testing.T) {
	m, customers := newMerchant(t, "USD"), shared.database(t, "customers")
	for range scaled(8, 200) {
		seed := rand.Uint64()
		p := &purse{merchant: m, t: t, r: rand.New(rand.NewPCG(seed, 0)), customers: customers, steps: []string{fmt.Sprintf("seed %d", seed)}}
		p.customer = m.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Paula","email":"paula@example.com"}`).id(t)
		var accepted chainQuote
		quote := newQuote(t, m.client, p.customer, "", "", chainDay(p.r.IntN(10_000)))
		m.want(t, http.StatusOK, http.MethodPost, "/quotes/"+quote+"/accept", "").decode(t, &accepted)
		p.booking = accepted.BookingID
		p.agree()
		for n := range 12 {
			kind := walk[p.r.IntN(len(walk))]
			if n == 10 && p.r.IntN(2) == 0 {
				kind = "cancel"
			}
			p.steps = append(p.steps, kind)
			p.step(kind)
			p.agree()
		}
	}
}
