package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/outbox"
)

// moneyInvoice contains the fields of an invoice that these tests read.
type moneyInvoice struct {
	ID, Status string
	Version    int64
	Booking    string      `json:"booking_id"`
	Total      minorAmount `json:"total_amount"`
	Paid       minorAmount `json:"amount_paid"`
	Credited   minorAmount `json:"amount_credited"`
	Due        minorAmount `json:"amount_due"`
	Taxes      []taxRow    `json:"tax_breakdown"`
	Payments   []struct {
		ID         string
		Amount     minorAmount
		Source     string
		ReversedAt *time.Time `json:"reversed_at"`
	}
}

// opened reports whether the invoice counts: it is neither a draft nor void.
func (v moneyInvoice) opened() bool { return v.Status != "draft" && v.Status != "void" }

// moneyBooking contains the fields of a booking that these tests read.
type moneyBooking struct {
	ID, Status    string
	Version       int64
	PaymentStatus string      `json:"payment_status"`
	Gross         minorAmount `json:"gross_amount"`
	Paid          minorAmount `json:"amount_paid"`
	Refunded      minorAmount `json:"amount_refunded"`
	Due           minorAmount `json:"amount_due"`
	Disputed      bool
}

// moneyIntent contains the fields of a payment intent that these tests read, in payments and at the stand-in.
type moneyIntent struct {
	ID, Status string
	Version    int64  // 0 at the stand-in
	Booking    string `json:"booking_id"`
	Received   int64  `json:"amount_received"`
	Refunded   int64  `json:"amount_refunded"`
	Disputed   bool
}

// moneyNote contains the fields of a credit note that these tests read.
type moneyNote struct {
	ID, Status string
	Version    int64
	Invoice    string      `json:"invoice_id"`
	Booking    string      `json:"booking_id"`
	Total      minorAmount `json:"total_amount"`
	Method     string      `json:"refund"`
	Refund     minorAmount `json:"refund_amount"`
	Taxes      []taxRow    `json:"tax_breakdown"`
}

// moneyRefund contains the fields of a refund that these tests read.
type moneyRefund struct {
	Status, Method string
	Booking        string `json:"booking_id"`
	Note           string `json:"credit_note_id"`
	Amount         int64
}

// moneyBooks is what the public API and the stand-in show about a merchant's bookings.
type moneyBooks struct {
	bookings map[string]moneyBooking
	invoices map[string]moneyInvoice
	notes    []moneyNote
	refunds  []moneyRefund
	intents  []moneyIntent
	held     map[string]moneyIntent // at the stand-in
	lost     map[string]int64       // what lost disputes have taken back of them
}

// everything returns all pages of a list.
func everything[T any](t *testing.T, c *client, path string) (all []T) {
	t.Helper()
	for cursor := ""; ; {
		page := read[struct {
			Data []T
			Next *string `json:"next_cursor"`
		}](t, c, path+cursor)
		if all = append(all, page.Data...); page.Next == nil {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
}

// books reads everything that was created since a time.
func (m merchant) books(t *testing.T, since time.Time) moneyBooks {
	t.Helper()
	b := moneyBooks{bookings: map[string]moneyBooking{}, invoices: map[string]moneyInvoice{}}
	after := "?limit=100&created_after=" + url.QueryEscape(since.UTC().Format(time.RFC3339Nano))
	var all sync.WaitGroup
	all.Go(func() {
		for _, one := range everything[moneyBooking](t, m.client, "/bookings"+after) {
			b.bookings[one.ID] = one
		}
	})
	all.Go(func() {
		for _, one := range everything[moneyInvoice](t, m.client, "/invoices"+after) {
			b.invoices[one.ID] = one
		}
	})
	all.Go(func() { b.notes = everything[moneyNote](t, m.client, "/credit-notes"+after) })
	all.Go(func() { b.refunds = everything[moneyRefund](t, m.client, "/refunds"+after) })
	all.Go(func() { b.intents = everything[moneyIntent](t, m.client, "/payment-intents"+after) })
	all.Go(func() { b.held, b.lost = m.held(t) })
	all.Wait()
	return b
}

// held returns the intents at the stand-in, and what lost disputes have taken back of them, by id.
func (m merchant) held(t *testing.T) (out map[string]moneyIntent, lost map[string]int64) {
	t.Helper()
	var h struct {
		holding

		Disputes []struct {
			Intent string `json:"payment_intent"`
			Status string
			Amount int64
		}
	}
	m.control(t, http.MethodGet, "accounts/"+m.account+"/snapshot", nil, &h)
	out, lost = map[string]moneyIntent{}, map[string]int64{}
	for _, i := range h.Intents {
		out[i.ID] = moneyIntent{ID: i.ID, Status: i.Status, Booking: i.Metadata["booking_id"], Received: i.Received}
	}
	for _, c := range h.Charges {
		if i := out[c.Intent]; c.Status == "succeeded" {
			i.Refunded += c.Refunded
			out[c.Intent] = i
		}
	}
	for _, d := range h.Disputes {
		i := out[d.Intent]
		i.Disputed = i.Disputed || d.Status == "lost" || strings.HasSuffix(d.Status, "needs_response") || strings.HasSuffix(d.Status, "under_review")
		out[d.Intent] = i
		if d.Status == "lost" {
			lost[d.Intent] = min(lost[d.Intent]+d.Amount, i.Received-i.Refunded)
		}
	}
	return out, lost
}

// versions returns the versions of everything in the books, by id.
func (b moneyBooks) versions() map[string]int64 {
	out := map[string]int64{}
	for id, one := range b.bookings {
		out[id] = one.Version
	}
	for id, one := range b.invoices {
		out[id] = one.Version
	}
	for _, one := range b.notes {
		out[one.ID] = one.Version
	}
	for _, one := range b.intents {
		out[one.ID] = one.Version
	}
	return out
}

// eventVersions contains the versions of the events of each object.
type eventVersions struct {
	mu sync.Mutex
	of map[string]map[int64]bool
}

// followVersions collects the versions of the events of the services that know amounts until the test ends.
func followVersions(t *testing.T) *eventVersions {
	t.Helper()
	topics := make([]string, len(moneyServices))
	for n, service := range moneyServices {
		topics[n] = "holdfast." + service
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(shared.env["KAFKA_BROKERS"]), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(time.Now().UnixMilli())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	v := &eventVersions{of: map[string]map[int64]bool{}}
	go func() {
		for {
			fetches := client.PollFetches(t.Context())
			if fetches.IsClientClosed() || t.Context().Err() != nil {
				return
			}
			v.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) {
				e, err := outbox.Decode(r.Value)
				if err != nil || e.GetType() == "account.updated" { // an account has the ID of its booking and versions of its own
					return
				}
				if v.of[e.GetObjectId()] == nil {
					v.of[e.GetObjectId()] = map[int64]bool{}
				}
				v.of[e.GetObjectId()][e.GetResourceVersion()] = true
			})
			v.mu.Unlock()
		}
	}()
	return v
}

// missing describes the objects that lack an event of one of their versions, or have one of a later version.
func (v *eventVersions) missing(versions map[string]int64) (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, last := range versions {
		if have := slices.Sorted(maps.Keys(v.of[id])); int64(len(have)) != last || have[len(have)-1] != last {
			list = append(list, fmt.Sprintf("%s is in version %d, and has events of %v", id, last, have))
		}
	}
	return list
}

// violation describes the first invariant that the books of a case violate; "" if none.
func (c *moneyCase) violation(books moneyBooks) string {
	for _, id := range c.invoices {
		if wrong := books.ofInvoice(books.invoices[id]); wrong != "" {
			return wrong
		}
	}
	for _, id := range c.bookings {
		if wrong := books.ofBooking(books.bookings[id]); wrong != "" {
			return wrong
		}
	}
	return ""
}

// ofInvoice checks an invoice: what is due, and that its credit notes and each row of their taxes stay within it.
func (b moneyBooks) ofInvoice(v moneyInvoice) string {
	paid, credited, returned, taxes, negative := int64(0), int64(0), int64(0), map[string]int64{}, map[string]bool{}
	for _, p := range v.Payments {
		if p.ReversedAt == nil {
			paid += p.Amount.Amount
		}
	}
	for _, row := range v.Taxes {
		taxes[row.Name+row.Rate] += row.Tax.Amount
		negative[row.Name+row.Rate] = row.Tax.Amount < 0 // of a balance that deducts a tax that the booking does not have
	}
	for _, n := range b.notes {
		if n.Invoice != v.ID {
			continue
		}
		if credited += n.Total.Amount; n.Status != "refund_failed" {
			returned += n.Refund.Amount
		}
		for _, row := range n.Taxes {
			taxes[row.Name+row.Rate] -= row.Tax.Amount
		}
	}
	due := max(0, v.Total.Amount-credited-paid+returned)
	if v.Status == "void" {
		due = 0
	}
	wrong := paid != v.Paid.Amount || credited != v.Credited.Amount || credited > v.Total.Amount || due != v.Due.Amount
	for tax, left := range taxes {
		wrong = wrong || left < 0 && !negative[tax] || left != 0 && credited > 0 && credited == v.Total.Amount
	}
	if wrong {
		return fmt.Sprintf("%+v has %d paid, %d credited, %d of it returned, and of its taxes is left %v", v, paid, credited, returned, taxes)
	}
	return ""
}

// ofBooking checks a booking: that it, payments and the stand-in agree, that no more is returned than was received, and what is due.
func (b moneyBooks) ofBooking(k moneyBooking) string {
	var received, returned, lost int64
	disputed, seen := false, map[string]bool{}
	for _, i := range b.intents {
		if i.Booking != k.ID {
			continue
		}
		held := b.held[i.ID]
		if held.Version = i.Version; held != i {
			return fmt.Sprintf("payments shows %+v, and the stand-in has %+v", i, held)
		}
		received, returned, disputed, seen[i.ID] = received+i.Received, returned+i.Refunded+b.lost[i.ID], disputed || i.Disputed, true
		lost += b.lost[i.ID]
	}
	for id, i := range b.held {
		if i.Booking == k.ID && !seen[id] {
			return fmt.Sprintf("payments does not show %+v", i)
		}
	}
	var placed, dues, invoiced int64
	for _, v := range b.invoices {
		if v.Booking != k.ID || !v.opened() {
			continue
		}
		placed, dues, invoiced = placed+v.Paid.Amount, dues+v.Due.Amount, invoiced+v.Total.Amount
		for _, p := range v.Payments {
			if p.Source == "manual" && p.ReversedAt == nil {
				received += p.Amount.Amount
			}
		}
	}
	credited := false
	for _, n := range b.notes {
		credited = credited || n.Booking == k.ID
		if n.Booking == k.ID && n.Method == "manual" {
			returned += n.Refund.Amount
		}
	}
	if credited { // cash that a credited invoice no longer needs can lie on no invoice, where only the booking shows it
		received = max(received, k.Paid.Amount)
	}
	for _, r := range b.refunds {
		if r.Booking == k.ID && r.Method != "gateway" && r.Note == "" {
			returned += r.Amount
		}
	}
	due := money.Outstanding{Gross: k.Gross.Amount, Invoiced: invoiced, Dues: dues, Placed: placed, Received: received, Returned: returned}.Due()
	if k.Paid.Amount != received || k.Refunded.Amount != returned || k.Disputed != disputed || returned-lost > received || k.Due.Amount != due {
		return fmt.Sprintf("%+v has received %d, returned %d, disputed %v", k, received, returned, disputed)
	}
	if received-returned > placed && dues > 0 {
		return fmt.Sprintf("%+v has received %d, returned %d, %d of it is placed on invoices, and %d are due on them", k, received, returned, placed, dues)
	}
	return ""
}

// settled waits until no case violates an invariant, and returns the violation of each that still does.
func (m merchant) settled(t *testing.T, since time.Time, cases []*moneyCase, maxWait time.Duration) map[*moneyCase]string {
	t.Helper()
	for end, pause := time.Now().Add(maxWait), 10*time.Millisecond; ; pause = min(2*pause, time.Second) {
		wrong, books := map[*moneyCase]string{}, m.books(t, since)
		for _, c := range cases {
			if v := c.violation(books); v != "" {
				wrong[c] = v
			}
		}
		if len(wrong) == 0 || time.Now().After(end) {
			return wrong
		}
		time.Sleep(pause)
	}
}

// moneyKind is a kind of tenant for random sequences.
type moneyKind struct{ currency, behavior, taxes string }

var moneyKinds = []moneyKind{
	{"USD", "exclusive", `[{"name":"Sales tax","rate":"8.875"}]`},
	{"EUR", "inclusive", `[{"name":"VAT","rate":"19"}]`},
	{"JPY", "exclusive", `[{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"}]`},
	{"KWD", "inclusive", `[]`},
}

func (k moneyKind) merchant(t *testing.T) merchant {
	t.Helper()
	m := newMerchant(t, k.currency)
	shared.identity(t, nil, "tenant", "update", m.slug, "--tax-behavior", k.behavior, "--default-taxes", k.taxes,
		"--refund-rules", `[{"hours_before":24,"percent":50}]`, "--auto-refund", "true")
	return m
}

// randomMoneySteps contains the steps of random sequences, each as often as its relative frequency. I is an invoice, N a number of
// another object, A an amount, L one to three lines of an invoice, and R a refund of a credit note.
var randomMoneySteps = []string{
	"card A", "card A", "card", "pay@I", "pay@I A", "intent A", "confirm@N visa", "confirm@N chargeDeclined", "card A refundFail", "card A pendingRefund",
	"finish@N succeeded", "finish@N failed", "cash@I A", "cash@I A", "cash@I A", "reverse@I", "refund A", "refund A cash", "refund A bank_transfer", "refund", "refund-card@N A",
	"note@I A R", "note@I A R", "note@I rest R", "lines@I R L", "draft L", "draft L", "open", "open@I", "open@I", "balance", "balance", "own L",
	"void@I", "uncollectible@I", "price A", "reprice", "guests N", "cancel", "dispute@N", "close@N won", "close@N lost", "package A", "quote A A",
}

// randomSteps returns a sequence that starts with a booking.
func randomSteps(r *rand.Rand, n int) (steps []string) {
	price := 1000 + r.Int64N(30_000)
	amount := func() string {
		v := 1 + r.Int64N(price)
		if r.IntN(2) == 0 {
			v = max(10, v/10*10)
		}
		return fmt.Sprint(v)
	}
	steps = []string{[]string{
		fmt.Sprintf("package %d", price), fmt.Sprintf("package %d %d", price, price/5), fmt.Sprintf("quote %d %d", price, price/3),
		fmt.Sprintf("package-quote %d %d", price, price/4), "unpriced",
	}[r.IntN(5)]}
	for len(steps) < n {
		word, args, _ := strings.Cut(randomMoneySteps[r.IntN(len(randomMoneySteps))], " ")
		word = strings.NewReplacer("I", fmt.Sprint(r.IntN(3)), "N", fmt.Sprint(r.IntN(3))).Replace(word)
		fields := strings.Fields(args)
		for i, field := range fields {
			switch field {
			case "A":
				fields[i] = amount()
			case "N":
				fields[i] = fmt.Sprint(1 + r.IntN(4))
			case "R":
				fields[i] = []string{"none", "gateway", "manual"}[r.IntN(3)]
			case "L":
				var lines []string
				for range 1 + r.IntN(3) {
					lines = append(lines, amount()+[]string{"", "a", "b", "c", "d"}[r.IntN(5)])
				}
				fields[i] = strings.Join(lines, " ")
			}
		}
		steps = append(steps, strings.TrimSpace(word+" "+strings.Join(fields, " ")))
	}
	return steps
}

// runAll executes steps at the same time. It returns the number of those that were not skipped, and an answer that is always wrong.
func (c *moneyCase) runAll(t *testing.T, steps []string) (executed int, wrong string) {
	t.Helper()
	results := make([]string, len(steps))
	var all sync.WaitGroup
	for n, step := range steps {
		all.Go(func() { results[n] = c.run(t, step) })
	}
	all.Wait()
	for n, result := range results {
		if result != "" {
			executed++
		}
		if strings.HasPrefix(result, "500") {
			wrong = steps[n] + " = " + result
		}
	}
	return executed, wrong
}

// rest credits what is left of each invoice, which is always possible.
func (c *moneyCase) rest(t *testing.T, books moneyBooks) string {
	t.Helper()
	for n, id := range c.invoices {
		if v := books.invoices[id]; v.opened() && v.Credited.Amount < v.Total.Amount {
			want := fmt.Sprintf("201 %d refund 0", v.Total.Amount-v.Credited.Amount)
			if got := c.run(t, fmt.Sprintf("note@%d rest", n)); got != want {
				return fmt.Sprintf("note@%d rest = %s, want %s, of %+v", n, got, want, v)
			}
		}
	}
	return ""
}

// shrunk is the test that is printed for a sequence.
const shrunk = `func TestShrunkSequence(t *testing.T) {
	if wrong := moneyKinds[%d].merchant(t).replayMoney(t, %d, strings.Split("%s", " | ")); wrong != "" {
		t.Error(wrong)
	}
}`

// replayMoney executes a sequence, as many steps at the same time as there are clients, and returns the first violation.
func (m merchant) replayMoney(t *testing.T, clients int, steps []string) string {
	t.Helper()
	since, c := time.Now(), m.moneyCase(t)
	for part := range slices.Chunk(steps, clients) {
		if _, wrong := c.runAll(t, part); wrong != "" {
			return wrong
		}
		if wrong := m.settled(t, since, []*moneyCase{c}, 10*time.Second)[c]; wrong != "" {
			return wrong
		}
	}
	if wrong := c.rest(t, m.books(t, since)); wrong != "" {
		return wrong
	}
	return m.settled(t, since, []*moneyCase{c}, 10*time.Second)[c]
}

// shrink removes steps from a sequence as long as it violates an invariant, for at most two minutes.
func (m merchant) shrink(t *testing.T, clients int, steps []string) []string {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 1; at < len(steps) && time.Now().Before(end); {
			shorter := slices.Delete(slices.Clone(steps), at, min(at+size, len(steps)))
			if m.replayMoney(t, clients, shorter) != "" {
				steps = shorter
			} else {
				at += size
			}
		}
	}
	return steps
}

// TestMoneyInRandomSequences executes random sequences of all operations that move money, on several tenants and bookings at the same
// time, one step after the other or four at a time. It checks the invariants after each step, and at the end that the rest of each
// invoice can be credited. A sequence that violates an invariant is shrunk and printed as a test.
func TestMoneyInRandomSequences(t *testing.T) {
	const cases, length = 8, 14
	end := time.Now().Add(time.Duration(scaled(30, 3*3600)) * time.Second)
	events := followVersions(t)
	var all sync.WaitGroup
	for _, kind := range moneyKinds {
		all.Go(func() {
			m, executed := kind.merchant(t), 0
			for batch := 0; executed < scaled(500, 25_000) && time.Now().Before(end) && !t.Failed(); batch++ {
				if batch%10 == 9 {
					m = kind.merchant(t) // what is read grows with the merchant
				}
				executed += m.batch(t, kind, events, cases, length)
			}
			t.Logf("%s: %d steps", kind.currency, executed)
		})
	}
	all.Wait()
}

// batch executes random sequences at the same time, and returns the number of their steps.
func (m merchant) batch(t *testing.T, kind moneyKind, events *eventVersions, cases, length int) (executed int) {
	t.Helper()
	since, steps, clients := time.Now(), map[*moneyCase][]string{}, map[*moneyCase]int{}
	var list []*moneyCase
	for n := range cases {
		c := m.moneyCase(t)
		list, clients[c] = append(list, c), 1+n%2*3
		seed := rand.Uint64()
		steps[c] = randomSteps(rand.New(rand.NewPCG(seed, 0)), length*clients[c])
	}
	fail := func(c *moneyCase, done int, wrong string) {
		t.Helper()
		short := m.shrink(t, clients[c], steps[c][:min(done, len(steps[c]))])
		t.Errorf("%s\n"+shrunk, wrong, slices.Index(moneyKinds, kind), clients[c], strings.Join(short, " | "))
		list = slices.DeleteFunc(list, func(one *moneyCase) bool { return one == c })
	}
	for n := range length + 1 {
		var mu sync.Mutex
		var all sync.WaitGroup
		found := map[*moneyCase]string{}
		books := moneyBooks{}
		if n == length {
			books = m.books(t, since)
		}
		for _, c := range list {
			all.Go(func() {
				count, wrong := 0, ""
				if n == length {
					wrong = c.rest(t, books)
				} else {
					count, wrong = c.runAll(t, steps[c][n*clients[c]:(n+1)*clients[c]])
				}
				mu.Lock()
				defer mu.Unlock()
				if executed += count; wrong != "" {
					found[c] = wrong
				}
			})
		}
		all.Wait()
		if len(found) == 0 {
			found = m.settled(t, since, list, 40*time.Second)
		}
		for c, wrong := range found {
			fail(c, (n+1)*clients[c], wrong)
		}
	}
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		missing := events.missing(m.books(t, since).versions())
		if len(missing) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("%q", missing)
			break
		}
	}
	return executed
}
