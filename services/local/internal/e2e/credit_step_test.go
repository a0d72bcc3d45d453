package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// creditFailpoints are the steps at which customers or payments crashes in TestCreditNotesCrashAtEachStep, and whether the credit note
// and its refund are completed without another request from the client.
var creditFailpoints = []struct {
	name, service string
	completed     bool
}{
	{"credit.numbered", "customers", false},
	{"credit.issued", "customers", true},
	{"credit.refunded", "customers", true},
	{"credit.committed", "customers", true},
	{"refund.begun", "payments", true},
	{"refund.called", "payments", true},
	{"refund.committed", "payments", true},
}

// creditStep is one request for a credit note during which a process crashes.
type creditStep struct {
	name, key, booking, invoice string
	intent                      intent
	completed                   bool
}

func (s creditStep) path() string { return "/invoices/" + s.invoice + "/credit-notes" }

const creditBody = `{"amount":{"amount":400,"currency":"USD"},"refund":"gateway"}`

// TestCreditNotesCrashAtEachStep crashes customers and payments at each step of a credit note with a refund by card, while other
// processes of both services continue. It checks that each credit note and its refund exist once, after the client's repetition and,
// where possible, without one, that numbers have no gap, and that the invoice and the booking show the refund.
func TestCreditNotesCrashAtEachStep(t *testing.T) {
	m := newMerchant(t, "USD")
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	payments := newReplica(t, "payments", filepath.Join(bin, "failpoints", "payments"))
	customers := newReplica(t, "customers", filepath.Join(bin, "failpoints", "customers"), "UPSTREAM_PAYMENTS_URL=http://"+payments.address)
	gateway := newReplica(t, "gateway", filepath.Join(bin, "gateway"), "UPSTREAM_CUSTOMERS_URL=http://"+customers.address)
	for _, r := range []*replica{payments, customers, gateway} {
		defer r.stop()
	}
	gateway.start(t, shared)
	dying := shared.with(t, m.key)
	dying.base = strings.Replace(m.base, strings.TrimPrefix(shared.env["BASE_URL"], "http://"), gateway.address+"/api/v1", 1)
	customer := m.insist(t, http.MethodPost, "/customers", `{"first_name":"Kai","email":"kai@example.com"}`, "", http.StatusCreated).id(t)

	steps := make([]creditStep, len(creditFailpoints))
	for n, f := range creditFailpoints {
		s := creditStep{name: f.name, key: unique("credit"), booking: m.booking(t), completed: f.completed}
		s.intent = m.begin(t, s.booking, 1000, "")
		m.pay(t, s.intent)
		body := fmt.Sprintf(`{"customer_id":%q,"booking_id":%q,"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":1000,"currency":"USD"},"taxes":[]}]}`, customer, s.booking)
		s.invoice = m.insist(t, http.MethodPost, "/invoices", body, s.key+"-made", http.StatusCreated).id(t)
		m.insist(t, http.MethodPost, "/invoices/"+s.invoice+"/open", "", s.key+"-open", http.StatusOK)
		await(t, s.name+": paid", func() bool { return s.read(t, m).Status == "paid" })
		victim := customers
		if f.service == "payments" {
			victim = payments
		}
		for _, r := range []*replica{payments, customers} {
			if r == victim {
				r.stop()
				r.start(t, shared, "FAILPOINT="+f.name)
			} else if r.cmd == nil || r.dead() {
				r.start(t, shared)
			}
		}
		a, err := dying.try(t, http.MethodPost, s.path(), creditBody, s.key)
		if f.service == "customers" && err == nil && a.Status < 300 {
			t.Errorf("%s: responded %d before its process crashed", s.name, a.Status)
		}
		victim.killed(t)
		steps[n] = s
	}
	for _, r := range []*replica{gateway, customers, payments} { // the other processes continue
		r.stop()
	}
	execute(t, shared.database(t, "customers"), `update credit_notes set call_until = now() - interval '1 s', call_next = now() - interval '1 s' where call_until is not null`)
	execute(t, shared.database(t, "payments"), `update refunds set leased_until = now() where leased_until is not null`)
	for _, s := range steps {
		if s.completed {
			patient(t, s.name+": completed", func() bool { return s.done(t, m) })
		} else if s.read(t, m).Credited.Amount != 0 {
			t.Errorf("%s: credited, without a request", s.name)
		}
	}
	for _, s := range steps {
		m.insist(t, http.MethodPost, s.path(), creditBody, s.key, http.StatusCreated)
		again := m.insist(t, http.MethodPost, s.path(), creditBody, s.key, http.StatusCreated)
		if again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the response is not repeated", s.name)
		}
		patient(t, s.name+": done", func() bool { return s.done(t, m) })
	}
	refunds := map[string][]int64{}
	for _, r := range m.holding(t).Refunds {
		refunds[r.Intent] = append(refunds[r.Intent], r.Amount)
	}
	for _, s := range steps {
		if got := refunds[s.intent.ID]; fmt.Sprint(got) != "[400]" {
			t.Errorf("%s: refunds %v", s.name, got)
		}
		if got := read[struct {
			Refunded struct{ Amount int64 } `json:"amount_refunded"`
		}](t, m.client, "/bookings/"+s.booking); got.Refunded.Amount != 400 {
			t.Errorf("%s: the booking shows a refund of %d", s.name, got.Refunded.Amount)
		}
	}
	gaps := rows(t, shared.database(t, "customers"), `select format('%s %s: %s of %s', tenant_id, livemode, count(*), max(seq)) from credit_notes
		group by tenant_id, livemode having count(*) <> max(seq)`)
	if len(gaps) > 0 {
		t.Errorf("numbers with gaps: %v", gaps)
	}
}

// creditedInvoice contains the fields of an invoice that a credit note changes.
type creditedInvoice struct {
	Status   string
	Credited struct{ Amount int64 } `json:"amount_credited"`
	Refunded struct{ Amount int64 } `json:"amount_refunded"`
}

func (s creditStep) read(t *testing.T, m merchant) creditedInvoice {
	t.Helper()
	return read[creditedInvoice](t, m.client, "/invoices/"+s.invoice)
}

// done reports whether the credit note and its refund took effect.
func (s creditStep) done(t *testing.T, m merchant) bool {
	t.Helper()
	v, notes := s.read(t, m), m.list(t, "/credit-notes?invoice_id="+s.invoice)
	if len(notes) > 1 {
		t.Errorf("%s: %d credit notes", s.name, len(notes))
	}
	return v.Status == "paid" && v.Credited.Amount == 400 && v.Refunded.Amount == 400 && len(notes) == 1 && notes[0]["status"] == "issued"
}
