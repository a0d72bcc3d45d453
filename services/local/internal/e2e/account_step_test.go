package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// accountFailpoints are the steps at which a process crashes in TestAccountsCrashAtEachStep, with the operation that includes the step, and
// whether the operation takes effect without another request from the client.
var accountFailpoints = []struct {
	name, service, operation string
	completed                bool
}{
	{"receipt.begun", "customers", "payment", true},
	{"receipt.recorded", "customers", "payment", true},
	{"receipt.committed", "customers", "payment", true},
	{"money.committed", "payments", "payment", true},
	{"reversal.recorded", "customers", "reversal", true},
	{"reversal.committed", "customers", "reversal", true},
	{"money.committed", "payments", "reversal", true},
	{"credit.numbered", "customers", "note, manual", false},
	{"credit.issued", "customers", "note, manual", true},
	{"credit.refunded", "customers", "note, manual", true},
	{"credit.committed", "customers", "note, manual", true},
	{"money.committed", "payments", "note, manual", true},
	{"credit.numbered", "customers", "note, gateway", false},
	{"credit.issued", "customers", "note, gateway", true},
	{"credit.refunded", "customers", "note, gateway", true},
	{"credit.committed", "customers", "note, gateway", true},
	{"refund.begun", "payments", "note, gateway", true},
	{"refund.called", "payments", "note, gateway", true},
	{"refund.committed", "payments", "note, gateway", true},
	{"cancellation.prepared", "bookings", "cancellation", false},
	{"cancellation.committed", "bookings", "cancellation", true},
}

// accountStep is one request that moves money of an account, during which a process crashes.
type accountStep struct {
	operation, failpoint string
	completed            bool
	ledger               *pgx.Conn

	booking, invoice      string
	path, body, key, want string // want is the state in the end
	status                int
}

func (s *accountStep) String() string { return s.operation + ", killed at " + s.failpoint }

// TestAccountsCrashAtEachStep crashes a process at each step of the recording and the reversal of a cash payment, of a credit note with a
// refund, and of a cancellation that reads the account, while other processes of the services continue. It checks that each operation
// takes effect once, after the client's repetition and, where possible, without one, that the ledger and the gateway contain its money
// once, and that the numbers of credit notes have no gap.
func TestAccountsCrashAtEachStep(t *testing.T) {
	m := owing(t)
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	replicas := map[string]*replica{"payments": newReplica(t, "payments", filepath.Join(bin, "failpoints", "payments"))}
	var upstreams []string
	for _, service := range []string{"customers", "bookings"} {
		r := newReplica(t, service, filepath.Join(bin, "failpoints", service), "UPSTREAM_PAYMENTS_URL=http://"+replicas["payments"].address)
		replicas[service], upstreams = r, append(upstreams, "UPSTREAM_"+strings.ToUpper(service)+"_URL=http://"+r.address)
	}
	gateway := newReplica(t, "gateway", filepath.Join(bin, "gateway"), upstreams...)
	gateway.start(t, shared)
	defer gateway.stop()
	for _, r := range replicas {
		defer r.stop()
	}
	dying := shared.with(t, m.key)
	dying.base = strings.Replace(m.base, strings.TrimPrefix(shared.env["BASE_URL"], "http://"), gateway.address+"/api/v1", 1)
	customer := m.insist(t, http.MethodPost, "/customers", `{"first_name":"Kai","email":"kai@example.com"}`, "", http.StatusCreated).id(t)

	ledger, documents := shared.database(t, "payments"), shared.database(t, "customers")
	steps := make([]*accountStep, len(accountFailpoints))
	for n, f := range accountFailpoints {
		s := &accountStep{operation: f.operation, failpoint: f.name, completed: f.completed, ledger: ledger, key: unique("step"), status: http.StatusOK}
		s.prepare(t, m, customer)
		victim := replicas[f.service]
		for _, r := range replicas {
			if r == victim {
				r.stop()
				r.start(t, shared, "FAILPOINT="+f.name)
			} else if r.cmd == nil || r.dead() {
				r.start(t, shared)
			}
		}
		if a, err := dying.try(t, http.MethodPost, s.path, s.body, s.key); err == nil && a.Status < 300 && (f.service != "payments" || s.status != http.StatusCreated) { // a credit note does not wait for payments
			t.Errorf("%v: responded %d before its process crashed", s, a.Status)
		}
		victim.killed(t)
		leases(t, documents, ledger, time.Hour) // nothing else may reach the failpoint of the next step
		steps[n] = s
	}
	gateway.stop()
	for _, r := range replicas { // the other processes continue
		r.stop()
	}
	leases(t, documents, ledger, -time.Second)
	for _, s := range steps {
		if s.completed {
			s.await(t, m, "without a request")
		} else if got := s.state(t, m); got == s.want {
			t.Errorf("%v: done, without a request", s)
		}
	}
	for _, s := range steps {
		m.insist(t, http.MethodPost, s.path, s.body, s.key, s.status)
		again := m.insist(t, http.MethodPost, s.path, s.body, s.key, s.status)
		if again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%v: the response is not repeated", s)
		}
		s.await(t, m, "repeated")
	}
	gaps := rows(t, documents, `select format('%s %s: %s of %s', tenant_id, livemode, count(*), max(seq)) from credit_notes
		group by tenant_id, livemode having count(*) <> max(seq)`)
	if len(gaps) > 0 {
		t.Errorf("numbers with gaps: %v", gaps)
	}
}

// leases moves the end of the leases of crashed processes.
func leases(t *testing.T, documents, ledger *pgx.Conn, left time.Duration) {
	t.Helper()
	for _, table := range []string{"charges", "credit_notes"} {
		execute(t, documents, fmt.Sprintf(`update %s set call_until = now() + interval '%[2]f s', call_next = now() + interval '%[2]f s' where call_until is not null`,
			table, left.Seconds()))
	}
	execute(t, ledger, fmt.Sprintf(`update refunds set leased_until = now() + interval '%f s' where leased_until is not null`, left.Seconds()))
}

// prepare creates the resources for the step: an invoice of 10.00, or a booking with a payment of 10.00.
func (s *accountStep) prepare(t *testing.T, m merchant, customer string) {
	t.Helper()
	const cash = `{"amount":{"amount":1000,"currency":"USD"},"method":"cash","reference":"R 7"}`
	card := s.operation == "note, gateway" || s.operation == "cancellation"
	of := "null"
	if card {
		s.booking = m.booking(t)
		of = fmt.Sprintf("%q", s.booking)
		m.pay(t, m.begin(t, s.booking, 1000, ""))
		m.paid(t, s.booking, 1000)
	}
	body := fmt.Sprintf(`{"customer_id":%q,"booking_id":%s,"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":1000,"currency":"USD"},"taxes":[]}]}`,
		customer, of)
	s.invoice = m.insist(t, http.MethodPost, "/invoices", body, s.key+"-made", http.StatusCreated).id(t)
	m.insist(t, http.MethodPost, "/invoices/"+s.invoice+"/open", "", s.key+"-open", http.StatusOK)
	s.path, s.body = "/invoices/"+s.invoice+"/record-payment", cash
	if s.operation != "payment" && !card {
		m.insist(t, http.MethodPost, s.path, cash, s.key+"-paid", http.StatusOK)
	}
	switch s.operation {
	case "payment":
		s.want = "paid, due 0, 1 payments of R 7, credited 0; received 1000, returned 0, 1 entries"
	case "reversal":
		s.path, s.body = "/invoices/"+s.invoice+"/payments/"+s.read(t, m).Payments[0].ID+"/reverse", ""
		s.want = "open, due 1000, 1 payments of R 7, credited 0; received 0, returned 0, 2 entries"
	case "note, manual":
		s.path, s.body, s.status = "/invoices/"+s.invoice+"/credit-notes", `{"amount":{"amount":400,"currency":"USD"},"refund":"manual"}`, http.StatusCreated
		s.want = "paid, due 0, 1 payments of R 7, credited 400; received 1000, returned 400, 2 entries; 1 notes, issued"
	case "note, gateway":
		s.path, s.body, s.status = "/invoices/"+s.invoice+"/credit-notes", `{"amount":{"amount":400,"currency":"USD"},"refund":"gateway"}`, http.StatusCreated
		s.want = "paid, due 0, 1 payments, credited 400; received 1000, returned 400, 3 entries; 1 notes, issued; refunds [400], shown 400"
	case "cancellation":
		s.path, s.body = "/bookings/"+s.booking+"/cancel", `{"reason":"rain"}`
		s.want = "paid, due 0, 1 payments, credited 0; received 1000, returned 500, 3 entries; refunds [500], shown 500; cancelled, due 500"
	}
}

// accountInvoice contains the fields of an invoice that the steps change.
type accountInvoice struct {
	Status   string
	Due      minorAmount `json:"amount_due"`
	Credited minorAmount `json:"amount_credited"`
	Payments []struct {
		ID        string
		Reference *string
	}
}

func (s *accountStep) read(t *testing.T, m merchant) accountInvoice {
	t.Helper()
	return read[accountInvoice](t, m.client, "/invoices/"+s.invoice)
}

// await waits until the operation took effect everywhere, and fails the test if it does not, or if it took effect twice.
func (s *accountStep) await(t *testing.T, m merchant, when string) {
	t.Helper()
	var got string
	defer func() {
		if got != s.want {
			t.Logf("%v: %s, want %s", s, got, s.want)
		}
	}()
	patient(t, s.String()+": "+when, func() bool { got = s.state(t, m); return got == s.want })
}

// state describes the invoice, the account in the ledger, the credit notes, the refunds at the gateway, and the booking.
func (s *accountStep) state(t *testing.T, m merchant) string {
	t.Helper()
	v, account := s.read(t, m), s.invoice
	state := fmt.Sprintf("%s, due %d, %d payments", v.Status, v.Due.Amount, len(v.Payments))
	if s.booking == "" && len(v.Payments) > 0 {
		state += " of " + *v.Payments[0].Reference
	}
	if s.booking != "" {
		account = s.booking
	}
	_, key := ids.Stored(account)
	state += fmt.Sprintf(", credited %d; %s", v.Credited.Amount, strings.Join(rows(t, s.ledger, `
		select format('received %s, returned %s, %s entries', a.received, a.returned, (select count(*) from money_entries e where e.account_id = a.id))
		from money_accounts a where a.id = $1::text::uuid`, key), " "))
	if notes := m.list(t, "/credit-notes?invoice_id="+s.invoice); len(notes) > 0 {
		state += fmt.Sprintf("; %d notes, %s", len(notes), notes[0]["status"])
	}
	if s.booking == "" {
		return state
	}
	holds, refunds := m.holding(t), []int64{}
	for _, i := range holds.Intents {
		for _, r := range holds.Refunds {
			if i.Metadata["booking_id"] == s.booking && r.Intent == i.ID {
				refunds = append(refunds, r.Amount)
			}
		}
	}
	b := read[paidBooking](t, m.client, "/bookings/"+s.booking)
	state += fmt.Sprintf("; refunds %v, shown %d", refunds, b.AmountRefunded.Amount)
	if b.Cancellation != nil {
		state += fmt.Sprintf("; %s, due %d", b.Status, b.Cancellation.RefundAmountDue.Amount)
	}
	return state
}
