package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// receiptFailpoints are the steps at which customers or payments crashes in TestReceiptsCrashAtEachStep.
var receiptFailpoints = []struct{ name, service, operation string }{
	{"receipt.begun", "customers", "record"},
	{"receipt.recorded", "customers", "record"},
	{"receipt.committed", "customers", "record"},
	{"money.committed", "payments", "record"},
	{"reversal.recorded", "customers", "reverse"},
	{"reversal.committed", "customers", "reverse"},
	{"money.committed", "payments", "reverse"},
}

// receiptStep is one request that records or reverses a cash payment, during which a process crashes.
type receiptStep struct {
	name, key, path, body, invoice string
	due                            int64 // afterwards
}

// receiptInvoice is an invoice with its payments.
type receiptInvoice struct {
	Due      struct{ Amount int64 } `json:"amount_due"`
	Payments []struct {
		ID        string
		Reference *string
	}
}

const receiptBody = `{"amount":{"amount":1000,"currency":"USD"},"method":"cash","reference":"R 7"}`

// TestReceiptsCrashAtEachStep crashes customers and payments at each step of the recording and of the reversal of a cash payment, while
// other processes of both services continue. It checks that each payment is recorded or reversed once, without another request and after
// the client's repetition, and that the ledger contains it once.
func TestReceiptsCrashAtEachStep(t *testing.T) {
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

	steps := make([]receiptStep, len(receiptFailpoints))
	for n, f := range receiptFailpoints {
		s := receiptStep{name: f.operation + ", killed at " + f.name, key: unique("receipt"), body: receiptBody}
		body := fmt.Sprintf(`{"customer_id":%q,"line_items":[{"description":"Tour","quantity":1,"unit_amount":{"amount":1000,"currency":"USD"},"taxes":[]}]}`, customer)
		s.invoice = m.insist(t, http.MethodPost, "/invoices", body, s.key+"-made", http.StatusCreated).id(t)
		m.insist(t, http.MethodPost, "/invoices/"+s.invoice+"/open", "", s.key+"-open", http.StatusOK)
		s.path = "/invoices/" + s.invoice + "/record-payment"
		if f.operation == "reverse" {
			m.insist(t, http.MethodPost, s.path, receiptBody, s.key+"-paid", http.StatusOK)
			s.path, s.body, s.due = "/invoices/"+s.invoice+"/payments/"+s.read(t, m).Payments[0].ID+"/reverse", "", 1000
		}
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
		if a, err := dying.try(t, http.MethodPost, s.path, s.body, s.key); err == nil && a.Status < 300 {
			t.Errorf("%s: responded %d", s.name, a.Status)
		}
		victim.killed(t)
		steps[n] = s
	}
	for _, r := range []*replica{gateway, customers, payments} { // the other processes continue
		r.stop()
	}
	execute(t, shared.database(t, "customers"), `update charges set call_until = now() - interval '1 s', call_next = now() - interval '1 s' where call_until is not null`)
	for _, s := range steps {
		patient(t, s.name+": completed", func() bool { return s.read(t, m).Due.Amount == s.due })
	}
	for _, s := range steps {
		m.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK)
		again := m.insist(t, http.MethodPost, s.path, s.body, s.key, http.StatusOK)
		if again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the response is not repeated", s.name)
		}
		got := s.read(t, m)
		if got.Due.Amount != s.due || len(got.Payments) != 1 || got.Payments[0].Reference == nil || *got.Payments[0].Reference != "R 7" {
			t.Errorf("%s: %+v", s.name, got)
		}
		ledger := rows(t, shared.database(t, "payments"), fmt.Sprintf(`select format('%%s of %%s', a.received, (select count(*) from money_entries e
			where e.account_id = a.id and e.kind = 'received')) from money_accounts a where a.id = '%s'`, uuidOf(t, s.invoice)))
		if want := fmt.Sprintf("[%d of 1]", 1000-s.due); fmt.Sprint(ledger) != want {
			t.Errorf("%s: the ledger has %v, want %s", s.name, ledger, want)
		}
	}
}

func (s receiptStep) read(t *testing.T, m merchant) receiptInvoice {
	t.Helper()
	return read[receiptInvoice](t, m.client, "/invoices/"+s.invoice)
}
