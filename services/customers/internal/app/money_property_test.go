package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/peers/peerstest"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
	"holdfast.dev/services/customers/migrations"
)

// step is one step of a sequence. Its numbers select among the objects that exist when the step runs, so that a sequence without
// some of its steps is a valid sequence too.
type step struct {
	kind    string
	of, amt int
}

// String implements fmt.Stringer.
func (s step) String() string { return fmt.Sprintf("{%q, %d, %d}", s.kind, s.of, s.amt) }

// kinds contains the kinds of steps. Frequent kinds are repeated.
var kinds = strings.Fields(`draft draft open open open quote balance card card card card cardOn refund refund refund refundLess
	dispute dispute cash cash reverse reverse void uncollectible again late cancel worker
	credit creditCash creditCard creditCard creditCard noteEnds noteEnds`)

// bookingTotal is the price of a booking in these tests.
const bookingTotal = 1000

// till contains one booking with its invoices and charges.
type till struct {
	*apitest.Env
	t        *testing.T
	ctx      context.Context
	invoices *app.Invoices
	bookings *peerstest.Bookings
	accounts *app.Accounts
	notes    *app.CreditNotes
	payments *peerstest.Payments
	owner    *pgx.Conn
	customer domain.CustomerID

	booking domain.Booking
	list    []domain.InvoiceID
	taken   []domain.Charge
	events  []domain.Account // the objects of all events about the account
	refunds []domain.CreditNoteID
	lose    bool // the next events are not delivered, until the account is read or an event arrives
}

func newTill(t *testing.T) *till {
	t.Helper()
	w := &till{Env: apitest.New(t, "customers", migrations.FS), t: t}
	tenants := &peerstest.Tenants{Info: domain.Invoicing{Prefix: "INV-"}}
	w.bookings = &peerstest.Bookings{}
	c := caller.FromContext(pgtest.Ctx(t, caller.Test))
	c.Currency, c.Timezone = "USD", "America/New_York"
	w.ctx = caller.With(t.Context(), c)
	w.invoices = &app.Invoices{Bookings: w.bookings, Tenants: tenants, Wake: func() {}, Now: time.Now}
	w.payments = &peerstest.Payments{}
	w.accounts = &app.Accounts{DB: w.DB.App, Invoices: w.invoices, Payments: w.payments, Tenants: tenants}
	w.notes = &app.CreditNotes{DB: w.DB.App, Invoices: w.invoices, Accounts: w.accounts, Payments: w.payments, Tenants: tenants}
	w.owner, w.customer = w.Owner(), ids.New[ids.CustomerPrefix]()
	err := w.DB.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertCustomer(ctx, tx, domain.Customer{ID: w.customer, FirstName: "Ada", Email: "ada@example.com"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// begin creates another booking without payments.
func (w *till) begin() error {
	w.booking = domain.Booking{
		ID: ids.New[ids.BookingPrefix](), CustomerID: w.customer, Status: "pending", Total: money.Amount{Minor: bookingTotal, Currency: "USD"}, Version: 1,
	}
	w.list, w.taken, w.events, w.refunds, w.lose = nil, nil, nil, nil, false
	w.payments.Status = "pending"
	return w.project()
}

func (w *till) project() error {
	w.booking = w.bookings.ChangeBooking(w.booking)
	return w.DB.App.Tx(w.ctx, func(_ context.Context, tx pg.Tx) error {
		store.PutBooking(tx, w.booking)
		return nil
	})
}

// use runs a use case in a transaction, without a stored response.
func (w *till) use(use func(ctx context.Context, tx pg.Tx) (domain.Invoice, error)) error {
	return operation.RetryTx(w.ctx, w.DB.App, func(ctx context.Context, tx pg.Tx) error {
		v, err := use(ctx, tx)
		if err == nil && !slices.Contains(w.list, v.ID) {
			w.list = append(w.list, v.ID)
		}
		return err
	})
}

// anyVersion is a precondition that always holds.
type anyVersion struct{}

// Check implements patch.Precondition.
func (anyVersion) Check(int64) error { return nil }

// refusal returns nil for an error with which the platform refuses a step, such as a payment of a draft.
func refusal(err error) error {
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.Invalid {
		return nil
	}
	return err
}

// take runs a step.
func (w *till) take(s step) error {
	switch s.kind {
	case "draft":
		return w.draft(domain.FullInvoice, 1+s.amt%400)
	case "balance":
		return refusal(w.draft(domain.BalanceInvoice, 0))
	case "quote":
		return w.quote(s.amt)
	case "card", "cardOn":
		c := domain.Charge{
			ID: fmt.Sprintf("pi_%s_%d", w.booking.ID, len(w.taken)), Account: w.account(), Amount: money.Amount{Minor: int64(1 + s.amt%600), Currency: "USD"},
		}
		if s.kind == "cardOn" && len(w.list) > 0 {
			c.Invoice = w.list[s.of%len(w.list)]
		}
		w.taken = append(w.taken, c)
		return w.put(c)
	case "handBack":
		received, returned := w.payments.Sums(w.account())
		if w.payments.HandBack(w.account(), fmt.Sprintf("rf_%d", len(w.events)), 1+int64(s.amt)%max(1, received-returned)) {
			return w.deliver()
		}
		return nil
	case "lose":
		w.lose = !w.lose
		return nil
	case "read":
		return w.accounts.Refresh(w.ctx, w.account())
	case "cancel":
		w.booking.Status = "cancelled"
		return w.project()
	case "worker":
		return w.late(s.of)
	case "noteEnds":
		return w.endRefund(s)
	case "refund", "refundLess", "dispute", "again", "late":
		return w.change(s)
	default:
		return w.act(s)
	}
}

func (w *till) draft(kind domain.InvoiceKind, total int) error {
	in := domain.InvoiceInput{CustomerID: patch.Value(w.customer.String()), BookingID: patch.Value(w.booking.ID.String()), Kind: patch.Value(kind)}
	if kind != domain.BalanceInvoice {
		in.Lines = patch.Value([]domain.LineInput{{Description: "d", Quantity: 1, UnitAmount: money.Amount{Minor: int64(total), Currency: "USD"}}})
	}
	write, err := w.invoices.PrepareCreate(w.ctx, in)
	if err != nil {
		return err
	}
	return w.use(func(ctx context.Context, tx pg.Tx) (domain.Invoice, error) { return w.invoices.Create(ctx, tx, write) })
}

// quote opens the invoice of an accepted quote, for its deposit or for the total.
func (w *till) quote(deposit int) error {
	lines, totals, err := domain.Price([]domain.Line{{Description: "d", Quantity: 1, UnitAmount: bookingTotal}}, domain.NoTerms("USD"))
	if err != nil {
		return err
	}
	return w.DB.App.Tx(w.ctx, func(ctx context.Context, tx pg.Tx) error {
		id, err := w.invoices.OpenForQuote(ctx, tx, domain.InvoiceSource{
			Quote: domain.NewQuoteID(), Number: "Q-1", Customer: w.customer, Deposit: int64(deposit % 3 * 100), Lines: lines, Totals: totals,
		}, w.booking, domain.Invoicing{Prefix: "INV-"})
		w.list = append(w.list, id)
		return err
	})
}

// account returns the account of the booking.
func (w *till) account() domain.AccountRef {
	return domain.AccountRef{Booking: w.booking.ID, Currency: "USD"}
}

// put changes a card payment.
func (w *till) put(c domain.Charge) error {
	w.payments.Card(c)
	return w.deliver()
}

// deliver applies the event about the last change of the account, unless events are lost.
func (w *till) deliver() error {
	w.events = append(w.events, w.payments.Event(w.account()))
	if w.lose {
		return nil
	}
	return w.accounts.ApplyEvent(w.ctx, w.events[len(w.events)-1])
}

// late applies an event again, or one that was lost.
func (w *till) late(of int) error {
	if len(w.events) == 0 {
		return nil
	}
	return w.accounts.ApplyEvent(w.ctx, w.events[of%len(w.events)])
}

// change changes the gateway's state of a charge, or delivers an event repeatedly or late.
func (w *till) change(s step) error {
	if s.kind == "again" || s.kind == "late" {
		return w.late(s.of)
	}
	if len(w.taken) == 0 {
		return nil
	}
	c := &w.taken[s.of%len(w.taken)]
	switch s.kind {
	case "refund":
		c.Refunded += min(int64(s.amt)%(c.Amount.Minor-c.Refunded+1), w.left())
	case "refundLess": // a refund of no credit note has failed
		c.Refunded -= int64(s.amt) % (c.Refunded - w.ofNotes(c.ID) + 1)
	case "dispute":
		c.Disputed = !c.Disputed
	}
	return w.put(*c)
}

// act performs an action on an invoice.
func (w *till) act(s step) error {
	if len(w.list) == 0 {
		return nil
	}
	id := w.list[s.of%len(w.list)]
	switch s.kind {
	case "credit", "creditCash", "creditCard":
		return w.credit(s, id)
	case "open":
		info, err := w.invoices.PrepareOpen(w.ctx)
		if err != nil {
			return err
		}
		return refusal(w.use(func(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
			return w.invoices.Open(ctx, tx, id, info, anyVersion{})
		}))
	case "void":
		return refusal(w.use(func(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
			return w.invoices.Void(ctx, tx, id, anyVersion{})
		}))
	case "uncollectible":
		return refusal(w.use(func(ctx context.Context, tx pg.Tx) (domain.Invoice, error) {
			return w.invoices.MarkUncollectible(ctx, tx, id, anyVersion{})
		}))
	}
	v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		return err
	}
	if s.kind == "cash" {
		in := domain.PaymentInput{Method: "cash", Amount: money.Amount{Minor: 1 + int64(s.amt)%max(v.Due().Minor, 1), Currency: "USD"}}
		return w.operate(w.accounts.RecordPayment(id, in, anyVersion{}))
	}
	if len(v.Payments) == 0 {
		return nil
	}
	payment := v.Payments[s.amt%len(v.Payments)].ID
	return w.operate(w.accounts.ReversePayment(id, payment, anyVersion{}))
}

// operate runs an operation, without a stored response.
func (w *till) operate(op operation.Operation[domain.Invoice]) error {
	return refusal(operation.Run(w.ctx, w.runner(), 0, op, func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (domain.Invoice, error)) error {
		return w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := step(ctx, tx)
			return err
		})
	}))
}

func (w *till) runner() operation.Runner {
	return operation.Runner{DB: w.DB.App, Keys: &idemstore.Store{DB: w.DB.App, Now: time.Now}}
}

// wrong describes what does not add up. It returns "" if everything does.
func (w *till) wrong() (string, error) {
	var out []string
	awaited := int64(0)
	parts, disputes := map[string]int64{}, map[string][]bool{}
	refunded := map[string]int64{}
	for _, id := range w.list {
		v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
		if err != nil {
			return "", err
		}
		paid := int64(0)
		for _, p := range v.Payments {
			if p.ReversedAt != nil {
				continue
			}
			paid += p.Amount.Minor
			parts[p.Part.Charge] += p.Amount.Minor
			refunded[p.Part.Charge] += p.Part.Refunded
			disputes[p.Part.Charge] = append(disputes[p.Part.Charge], p.Part.Disputed)
		}
		if text, err := w.wrongNotes(v); err != nil || text != "" {
			out = append(out, text, fmt.Sprint(err))
		}
		settled := v.Status == domain.InvoicePaid || v.Status == domain.InvoiceCredited
		if paid != v.Paid.Minor || paid > v.Total.Minor || settled != (v.Due().IsZero() && v.Number != nil && v.VoidedAt == nil) {
			out = append(out, fmt.Sprintf("%s is %s: paid %d, its payments are %d, of %d", v.ID, v.Status, v.Paid.Minor, paid, v.Total.Minor))
		}
		if v.Status.Awaits() {
			awaited += v.Due().Minor
		}
		last, err := w.lastObject(v.ID.String())
		if err != nil {
			return "", err
		}
		body, err := json.Marshal(view.Invoice(v, api.Mode(caller.Test)))
		if err != nil {
			return "", err
		}
		differs := map[string]any{}
		if err := json.Unmarshal(outbox.Diff(last, body), &differs); err != nil {
			return "", err
		}
		delete(differs, "booking_status") // it changes without an event
		if len(differs) > 0 {
			out = append(out, fmt.Sprintf("the last event of %s differs in %v", v.ID, differs))
		}
	}
	received, returned := w.payments.Sums(w.account())
	if returned > received {
		out = append(out, fmt.Sprintf("%d of %d are returned", returned, received))
	}
	known, err := store.AccountVersion(w.ctx, w.DB.App.Read(w.ctx), w.account())
	if err != nil {
		return "", err
	}
	state, err := w.payments.Account(w.ctx, w.account(), 0)
	if err != nil || state.Version != known { // an event is on its way
		return strings.Join(out, "\n"), err
	}
	free, err := w.free(state, parts, refunded, disputes)
	out = append(out, free.wrong...)
	if free.sum = free.sum + free.slack - free.handedBack; free.sum > 0 && awaited > 0 {
		out = append(out, fmt.Sprintf("%d lie on no invoice that needs them, while %d are awaited", free.sum, awaited))
	}
	if err != nil {
		return "", err
	}
	return strings.Join(out, "\n"), nil
}

// freeMoney is the money of an account that no invoice needs.
type freeMoney struct {
	sum, slack, handedBack int64
	wrong                  []string
}

// free compares the payments of the account with their parts on invoices, and returns what no invoice needs.
func (w *till) free(state domain.Account, parts, refunded map[string]int64, disputes map[string][]bool) (out freeMoney, err error) {
	for _, e := range state.Entries {
		if e.Kind == domain.ReturnEntry {
			if e.Note.IsZero() {
				out.handedBack += e.Amount
			}
			continue
		}
		c := e.Charge(w.account())
		if e.ReversedAt != nil {
			c.Amount.Minor = 0
		}
		var unapplied int64
		if err := w.owner.QueryRow(w.ctx, `select unapplied from charges where id = $1`, c.ID).Scan(&unapplied); err != nil {
			return out, err
		}
		free := max(0, unapplied-(c.Refunded-c.Directed))
		out.sum += free
		if got := parts[c.ID] - refunded[c.ID] + free; unapplied < 0 || parts[c.ID]+unapplied != c.Amount.Minor || got != c.Amount.Minor-c.Refunded {
			out.wrong = append(out.wrong, fmt.Sprintf("of %s: %d on invoices (%d refunded), %d on none; it is %d, %d refunded",
				c.ID, parts[c.ID], refunded[c.ID], unapplied, c.Amount.Minor, c.Refunded))
		}
		if slices.Contains(disputes[c.ID], !c.Disputed) {
			out.wrong = append(out.wrong, fmt.Sprintf("%s is disputed: %v, its parts %v", c.ID, c.Disputed, disputes[c.ID]))
		}
	}
	for _, id := range w.list {
		v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
		if err != nil {
			return out, err
		}
		out.slack += v.Slack()
	}
	return out, nil
}

// lastObject returns the object of the last event about an invoice or a credit note, from which the other services know it.
func (w *till) lastObject(id string) (json.RawMessage, error) {
	var message []byte
	if err := w.owner.QueryRow(w.ctx, `select message from outbox where aggregate_id = $1 order by seq desc limit 1`, id).Scan(&message); err != nil {
		return nil, fmt.Errorf("last event of %s: %w", id, err)
	}
	e, err := outbox.Decode(message)
	return e.GetObject(), err
}

// run runs the steps of a sequence for a new booking. It returns what was wrong, and after which step.
func (w *till) run(steps []step) (string, int) {
	w.t.Helper()
	if err := w.begin(); err != nil {
		w.t.Fatal(err)
	}
	for i, s := range steps {
		if err := w.take(s); err != nil {
			return err.Error(), i
		}
		wrong, err := w.wrong()
		if err != nil {
			w.t.Fatal(err)
		}
		if wrong != "" {
			return wrong, i
		}
	}
	return "", len(steps)
}

// shortest removes the steps that are not necessary for the failure.
func (w *till) shortest(steps []step, wrong string) ([]step, string) {
	for i := len(steps) - 1; i >= 0; i-- {
		less := slices.Delete(slices.Clone(steps), i, i+1)
		if text, at := w.run(less); text != "" {
			steps, wrong = less[:min(at+1, len(less))], text
			i = min(i, len(steps))
		}
	}
	return steps, wrong
}

// TestDisputeOfTwoParts checks that a dispute of a charge with two parts on one invoice begins and ends with an event.
func TestDisputeOfTwoParts(t *testing.T) {
	t.Parallel()
	steps := []step{{"draft", 0, 298}, {"card", 0, 50}, {"refund", 0, 5}, {"open", 0, 0}, {"refundLess", 0, 1}, {"dispute", 0, 0}, {"dispute", 0, 0}}
	if wrong, at := newTill(t).run(steps); wrong != "" {
		t.Errorf("after %v:\n%s", steps[:at+1], wrong)
	}
}

// TestMoneyAddsUp runs random sequences of steps on one booking: quotes, invoices, card and cash payments, reversals, voids,
// refunds that can fail, money that is handed back, credit notes with their refunds, disputes, cancellations, and events that are lost,
// repeated or late. It checks after each step that the paid amount of an invoice is the sum of its payments, that no more is returned than
// was received, and that the last event contains the stored state. Unless an event is on its way, it also checks that every payment of the
// ledger is fully accounted for as allocated or unallocated, and that no money is unneeded while an invoice awaits money.
func TestMoneyAddsUp(t *testing.T) {
	t.Parallel()
	w, sequences := newTill(t), 100
	if os.Getenv("TEST_SCALE") == "full" {
		sequences = 5000
	}
	for range sequences {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		steps := make([]step, 8+r.IntN(25))
		for i := range steps {
			steps[i] = step{kinds[r.IntN(len(kinds))], r.IntN(1000), r.IntN(1000)}
		}
		if wrong, at := w.run(steps); wrong != "" {
			steps, wrong = w.shortest(steps[:at+1], wrong)
			t.Fatalf("seed %d, after the last of %v:\n%s", seed, steps, wrong)
		}
	}
}
