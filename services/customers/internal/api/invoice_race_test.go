package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/app"
)

// anyVersion is a precondition that always holds.
type anyVersion struct{}

// Check implements patch.Precondition.
func (anyVersion) Check(int64) error { return nil }

// TestParallelOpensLeaveNoGap opens 200 invoices at the same time, while connections are killed and requests are abandoned at
// random. It checks that in the end each one was opened once, with one event, and that the numbers are 1 to 200.
func TestParallelOpensLeaveNoGap(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const n, connections = 200, 8
	c := w.create(ctx, "")
	list := make([]invoice, n)
	for i := range list {
		list[i] = w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+line(int64(i))+`]}`).is(201).invoice()
	}
	use := &app.Invoices{Bookings: w.bookings, Tenants: w.tenants, Wake: func() {}, Now: time.Now}
	open := func(v invoice) { // until it is open; each attempt can be abandoned at any moment
		id, err := ids.Parse[ids.InvoicePrefix](v.ID)
		if err != nil {
			t.Error(err)
			return
		}
		for end := time.Now().Add(2 * time.Minute); ; {
			attempt, cancel := context.WithTimeout(ctx, time.Duration(rand.N(60))*time.Millisecond)
			if rand.N(3) > 0 {
				cancel()
				attempt, cancel = context.WithCancel(ctx)
			}
			info, err := use.PrepareOpen(attempt)
			if err == nil {
				err = w.DB.App.Tx(attempt, func(ctx context.Context, tx pg.Tx) error {
					_, err := use.Open(ctx, tx, id, info, anyVersion{})
					return err
				})
			}
			cancel()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Errorf("never opened: %v", err)
				return
			}
		}
	}
	killed := w.killing(func() {
		var all sync.WaitGroup
		for _, v := range list {
			all.Go(func() { open(v) })
		}
		all.Wait()
	})
	numbers := map[string]bool{}
	for _, v := range list {
		read := w.do(ctx, "GET", "/invoices/"+v.ID, "")
		for retries := 0; read.Status == 503 && retries < connections; retries++ { // each connection of the pool can be a killed one
			read = w.do(ctx, "GET", "/invoices/"+v.ID, "")
		}
		got := read.is(200).invoice()
		numbers[deref(got.Number)] = true
		if got.Version != 2 || got.OpenedAt == nil {
			t.Errorf("%s: %+v", v.ID, got)
		}
	}
	for i := 1; i <= n; i++ {
		if !numbers[fmt.Sprintf("INV-%06d", i)] {
			t.Errorf("no number %d", i)
		}
	}
	if next := w.Count(`select next from invoice_counters`); len(numbers) != n || next != n+1 || killed == 0 {
		t.Errorf("%d numbers, the next is %d, %d connections killed", len(numbers), next, killed)
	}
	if got := len(strings.Fields(w.Types())); got != 1+2*n {
		t.Errorf("%d events", got)
	}
}

// killing repeatedly kills a connection of the service that is in a transaction, while it runs work.
func (w *world) killing(work func()) (killed int) {
	w.T.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	owner := w.Owner()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return killed
		case <-tick.C:
		}
		var n int
		err := owner.QueryRow(w.T.Context(), `
			select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null and usename = 'holdfast_test_app'
				order by random() limit 1) x`).Scan(&n)
		if err != nil {
			w.T.Error(err)
		}
		killed += n
	}
}

// TestParallelPayments checks that simultaneous payments never exceed the amount due. The last one that fits pays the invoice, with
// one event.
func TestParallelPayments(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for _, total := range []int64{100, 105} {
		v := w.open(ctx, total)
		var all sync.WaitGroup
		var taken atomic.Int64
		for range 30 {
			all.Go(func() {
				switch a := w.pay(ctx, v, 10); a.Status {
				case 200:
					taken.Add(10)
				default:
					a.is(422)
				}
			})
		}
		all.Wait()
		got := w.invoice(ctx, v.ID)
		sum := int64(0)
		for _, p := range got.Payments {
			sum += p.Amount.Amount
		}
		if taken.Load() != 100 || sum != 100 || got.AmountPaid.Amount != 100 || got.AmountDue.Amount != total-100 || (got.Status == "paid") != (total == 100) {
			t.Errorf("of %d: %d taken, %d listed, %+v", total, taken.Load(), sum, got)
		}
		types := w.invoiceTypes(ctx, v.ID)
		if paid := strings.Count(types, " paid"); len(strings.Fields(types)) != 12 || total == 100 && paid != 1 || total != 100 && paid != 0 {
			t.Errorf("events: %s", types)
		}
	}
}

// TestParallelReversals checks that each payment is reversed once, however many requests reverse it, while other requests record
// payments.
func TestParallelReversals(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.open(ctx, 100)
	for range 5 {
		w.pay(ctx, v, 20).is(200)
	}
	payments := w.invoice(ctx, v.ID).Payments
	var all sync.WaitGroup
	var again atomic.Int64
	for _, p := range payments {
		for range 6 {
			all.Go(func() { w.act(ctx, v, "payments/"+p.ID+"/reverse").is(200) })
		}
		all.Go(func() {
			if w.pay(ctx, v, 20).Status == 200 {
				again.Add(1)
			}
		})
	}
	all.Wait()
	got := w.invoice(ctx, v.ID)
	if got.AmountPaid.Amount != 20*again.Load() || len(got.Payments) != 5+int(again.Load()) {
		t.Errorf("%d paid again: %+v", again.Load(), got)
	}
	types := strings.Fields(w.invoiceTypes(ctx, v.ID))
	if len(types) != 2+5+5+int(again.Load()) {
		t.Errorf("events: %v", types)
	}
	if n := w.Count(`select count(*) from invoice_payments where reversed_at is not null`); n != 5 {
		t.Errorf("%d reversed", n)
	}
}

// TestParallelBalances checks that only one of many balances that are opened at the same time charges the rest, even while a deposit
// invoice is being opened.
func TestParallelBalances(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for range 5 {
		c := w.create(ctx, "")
		booked := `"booking_id":` + str(w.bookings.AddBooking(customerID(t, c), usdOf(1000)).ID.String())
		deposit := w.draft(ctx, 300, booked, `"kind":"deposit"`)
		var drafts []invoice
		for range 12 {
			drafts = append(drafts, w.invoicing(ctx, booked, `"kind":"balance"`).is(201).invoice())
		}
		var all sync.WaitGroup
		var opened, total atomic.Int64
		all.Go(func() { w.act(ctx, deposit, "open").is(200) })
		for _, v := range drafts {
			all.Go(func() {
				a := w.act(ctx, v, "open")
				if a.Status != 200 {
					a.is(422, "invalid_request", "booking_id")
					return
				}
				opened.Add(1)
				total.Add(a.invoice().Total.Amount)
			})
		}
		all.Wait()
		if opened.Load() != 1 || total.Load() != 1000 && total.Load() != 700 {
			t.Errorf("%d balances of %d", opened.Load(), total.Load())
		}
	}
}

// inOrder runs two calls. A lock holds back the first call until the second one waits for it too. Then the lock is released.
func (w *world) inOrder(release func(), held, both string, first, second func() response) (response, response) {
	w.T.Helper()
	begin := func(call func() response) <-chan response {
		done := make(chan response, 1)
		go func() { done <- call() }()
		return done
	}
	a := begin(first)
	w.Waiting(held)
	b := begin(second)
	w.Waiting(both)
	release()
	return <-a, <-b
}

// TestBalanceWhileAnInvoiceIsOpened opens an invoice while a balance of its booking is created or opened, in each order. It checks
// that the invoice that is opened first counts, and that the balance then charges the rest. Card money of the booking is allocated to the
// opened invoice.
func TestBalanceWhileAnInvoiceIsOpened(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c, tenant := w.create(ctx, ""), caller.FromContext(ctx).Tenant
	numbering := func() func() { // holds back the numbering of an invoice
		return w.Hold(`select pg_advisory_xact_lock(hashtextextended('invoice numbers' || $1::uuid::text || 'false', 0))`, tenant.UUID())
	}
	writing := func() func() { return w.Hold(`lock table outbox in share mode`) } // holds back the writing of an event
	// begin creates a booking of 1,000 with a draft of 400 and card money of 150.
	begin := func() (draft invoice, open, create func() response) {
		booked := `"booking_id":` + str(w.bookings.AddBooking(customerID(t, c), usdOf(1000)).ID.String())
		draft = w.draft(ctx, 400, booked)
		w.Exec(`insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied, currency)
			select tenant_id, livemode, 'pi_' || id, booking_id, 150, 150, 'USD' from invoices where number is null and kind = 'full'`)
		return draft, func() response { return w.act(ctx, draft, "open") }, func() response { return w.invoicing(ctx, booked, `"kind":"balance"`) }
	}
	check := func(name string, opened response, balance invoice, want int64) {
		t.Helper()
		opened.is(200)
		if balance.Total.Amount != want {
			t.Errorf("%s: a balance of %d, want %d", name, balance.Total.Amount, want)
		}
		if paid := w.invoice(ctx, opened.invoice().ID).AmountPaid.Amount; paid != 150 {
			t.Errorf("%s: %d paid on the opened invoice", name, paid)
		}
	}
	// opensRest checks that a balance of 1,000 is opened for the 600 that are left, and that one with its own lines can request more.
	opensRest := func(name string, opened response) {
		t.Helper()
		v := opened.is(200).invoice()
		if v.Total.Amount != 600 || len(v.LineItems) != 2 {
			t.Errorf("%s: %+v", name, v)
		}
		own := w.invoicing(ctx, `"kind":"balance"`, `"booking_id":`+str(*v.BookingID), `"line_items":[`+line(1600)+`]`).is(201).invoice()
		w.act(ctx, own, "open").is(200)
	}

	_, open, create := begin()
	opened, created := w.inOrder(numbering(), "advisory", "advisory transactionid", open, create)
	check("created while it is opened", opened, created.is(201).invoice(), 600)
	w.act(ctx, created.invoice(), "open").is(200)

	_, open, create = begin()
	created, opened = w.inOrder(writing(), "relation", "relation transactionid", create, open)
	check("opened while it is created", opened, created.is(201).invoice(), 1000)
	opensRest("opened while it is created", w.act(ctx, created.invoice(), "open"))

	_, open, create = begin()
	balance := create().is(201).invoice()
	openBalance := func() response { return w.act(ctx, balance, "open") }
	opened, second := w.inOrder(numbering(), "advisory", "advisory advisory", open, openBalance)
	check("before the balance", opened, balance, 1000)
	opensRest("before the balance", second)

	draft, open, create := begin() // any invoice can be opened after the balance
	balance = create().is(201).invoice()
	first, opened := w.inOrder(numbering(), "advisory", "advisory advisory", openBalance, open)
	if v := w.invoice(ctx, balance.ID); first.is(200).invoice().Total.Amount != 1000 || v.AmountPaid.Amount != 150 || w.invoice(ctx, draft.ID).AmountPaid.Amount != 0 {
		t.Errorf("before the other: %+v", v)
	}
	opened.is(200)
	create().is(422, "invalid_request", "booking_id")
}

// TestEraseAmidInvoices checks that erasing a customer while its invoices are created and changed leaves no personal data of
// earlier requests.
func TestEraseAmidInvoices(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for range 5 {
		c := w.create(ctx, "")
		created := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+line(9)+`],"notes":"Trace"}`).is(201).invoice()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				a := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"line_items":[`+line(9)+`],"notes":"Trace"}`)
				if a.Status != 201 {
					a.is(422, "invalid_request", "customer_id")
				}
			})
			all.Go(func() {
				if a := w.act(ctx, created, "open"); a.Status != 200 {
					a.is(422, "invalid_request", "customer_id")
				}
			})
		}
		all.Go(func() { w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204) })
		all.Wait()
	}
	for _, sql := range []string{
		`select count(*) from invoices where notes is not null`,
		`select count(*) from outbox where encode(message, 'escape') like '%Trace%'`,
	} {
		if n := w.Count(sql); n != 0 {
			t.Errorf("%d left: %s", n, sql)
		}
	}
}
