package peerstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/customers/internal/domain"
)

// Payments replaces the payments service with a ledger in memory. It records each payment and each return once, and creates one refund
// per credit note.
type Payments struct {
	// Before runs before a call that changes something takes effect, and After runs afterwards. Each can return the error that the
	// caller sees.
	Before, After func(ctx context.Context) error
	// Refuse makes payments refuse new refunds.
	Refuse bool
	// Status is the status of new refunds. "": succeeded.
	Status string
	// Page limits the entries of a response. 0: no limit.
	Page int

	mu       sync.Mutex
	accounts map[domain.AccountRef]*account
	refunds  map[domain.CreditNoteID]*refund
	calls    int
}

// account is an account with the newest state of each payment and return, and the version with that state.
type account struct {
	version   int64
	entries   []domain.Entry
	elsewhere map[string]int64 // what others than credit notes have refunded of a charge
}

// refund is the refund of a credit note.
type refund struct {
	of    domain.AccountRef
	state domain.NoteRefund
}

// errNotCovered is the response to a reversal that would leave less than what was returned.
var errNotCovered = apperr.Field("payment_id", "What was refunded would not be covered.")

func (f *Payments) at(of domain.AccountRef) *account {
	if f.accounts == nil {
		f.accounts = map[domain.AccountRef]*account{}
	}
	if f.accounts[of] == nil {
		f.accounts[of] = &account{}
	}
	return f.accounts[of]
}

// entry returns the entry of an object, or nil.
func (a *account) entry(id string) *domain.Entry {
	i := slices.IndexFunc(a.entries, func(e domain.Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return &a.entries[i]
}

// put writes the state of an entry with the next version.
func (a *account) put(e domain.Entry) {
	a.version++
	e.Version = a.version
	a.entries = slices.DeleteFunc(a.entries, func(old domain.Entry) bool { return old.ID == e.ID })
	a.entries = append(a.entries, e)
}

func (a *account) sums() (received, returned int64) {
	for _, e := range a.entries {
		switch {
		case e.ReversedAt != nil:
		case e.Kind == domain.ReturnEntry:
			returned += e.Amount
		default:
			received, returned = received+e.Amount, returned+e.Returned
		}
	}
	return received, returned
}

// returned returns what was returned of a charge, including refunds that have begun, and the part of credit notes.
func (f *Payments) returned(of domain.AccountRef, e domain.Entry) (all, notes int64) {
	for _, r := range f.refunds {
		for _, p := range r.state.Parts {
			if r.of == of && p.Status != "failed" && p.Charge == e.ID {
				notes += p.Amount
			}
		}
	}
	return max(e.Returned, f.at(of).elsewhere[e.ID]+notes), notes
}

// held returns what refunds that have begun will return of the charges of an account, or of one of them.
func (f *Payments) held(of domain.AccountRef, charge string) (sum int64) {
	for _, e := range f.at(of).entries {
		if e.Kind == domain.CardEntry && (charge == "" || charge == e.ID) {
			all, _ := f.returned(of, e)
			sum += all - e.Returned
		}
	}
	return sum
}

// moved gives the charges of a refund the next versions.
func (f *Payments) moved(r *refund) {
	a := f.at(r.of)
	for _, p := range r.state.Parts {
		a.put(*a.entry(p.Charge))
	}
}

func (f *Payments) state(of domain.AccountRef, since int64) domain.Account {
	a := f.at(of)
	out := domain.Account{AccountRef: of, Version: a.version}
	out.Received, out.Returned = a.sums()
	out.Returned += f.held(of, "")
	for _, e := range a.entries {
		if e.Version > since {
			if e.Kind == domain.CardEntry {
				e.Returned, e.NoteReturned = f.returned(of, e)
			}
			out.Entries = append(out.Entries, e)
		}
	}
	if f.Page > 0 && len(out.Entries) > f.Page {
		out.Entries, out.More = out.Entries[:f.Page], true
	}
	return out
}

// Event returns the object of the event about the last change of an account.
func (f *Payments) Event(of domain.AccountRef) domain.Account {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state(of, f.at(of).version-1)
}

// Card sets the state of a card payment.
func (f *Payments) Card(c domain.Charge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.at(c.Account)
	at := time.Now()
	if old := a.entry(c.ID); old != nil {
		at = old.At
	}
	_, notes := f.returned(c.Account, domain.Entry{ID: c.ID})
	if a.elsewhere == nil {
		a.elsewhere = map[string]int64{}
	}
	a.elsewhere[c.ID] = max(0, c.Refunded-notes)
	a.put(domain.Entry{
		ID: c.ID, Kind: domain.CardEntry, Method: "card", Amount: c.Amount.Minor, Returned: c.Refunded, Disputed: c.Disputed, Invoice: c.Invoice, At: at,
	})
}

// HandBack records that money was handed back outside the gateway with POST /refunds. It returns false if less is left.
func (f *Payments) HandBack(of domain.AccountRef, id string, amount int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	received, returned := f.at(of).sums()
	if received-returned-f.held(of, "") < amount {
		return false
	}
	f.at(of).put(domain.Entry{ID: id, Kind: domain.ReturnEntry, Method: "cash", Amount: amount, At: time.Now()})
	return true
}

// Sums returns what was received and returned.
func (f *Payments) Sums(of domain.AccountRef) (received, returned int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at(of).sums()
}

// Account implements app.PaymentService.
func (f *Payments) Account(_ context.Context, of domain.AccountRef, since int64) (domain.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state(of, since), nil
}

// RecordReceipt implements app.PaymentService.
func (f *Payments) RecordReceipt(ctx context.Context, r domain.Receipt, version int64) (domain.Account, error) {
	return call(ctx, f, func() (domain.Account, error) {
		e := domain.Entry{ID: r.ID.String(), Kind: domain.ReceiptEntry, Method: r.Method, Amount: r.Amount, Invoice: r.Invoice, At: r.PaidAt}
		return f.record(r.Account, e, version)
	})
}

// record records an entry once.
func (f *Payments) record(of domain.AccountRef, e domain.Entry, version int64) (domain.Account, error) {
	a := f.at(of)
	switch {
	case a.entry(e.ID) != nil:
	case version >= 0 && version != a.version:
		return domain.Account{}, domain.ErrAccountMoved
	default:
		a.put(e)
	}
	return f.state(of, version), nil
}

// ReverseReceipt implements app.PaymentService.
func (f *Payments) ReverseReceipt(ctx context.Context, of domain.AccountRef, id domain.PaymentID, version int64) (domain.Account, error) {
	return call(ctx, f, func() (domain.Account, error) {
		a := f.at(of)
		e := a.entry(id.String())
		if e == nil {
			return domain.Account{}, apperr.ErrUnavailable
		}
		if received, returned := a.sums(); e.ReversedAt == nil && received-e.Amount < returned+f.held(of, "") {
			return domain.Account{}, errNotCovered
		}
		if e.ReversedAt == nil {
			reversed := *e
			reversed.ReversedAt = new(time.Now())
			a.put(reversed)
		}
		return f.state(of, version), nil
	})
}

// RecordReturn implements app.PaymentService.
func (f *Payments) RecordReturn(ctx context.Context, n domain.CreditNote, version int64) (domain.Account, error) {
	return call(ctx, f, func() (domain.Account, error) {
		of := n.Account()
		a := f.at(of)
		received, returned := a.sums()
		if a.entry(n.ID.String()) == nil && (version < 0 || version == a.version) && received-returned-f.held(of, "") < n.Refund.Minor {
			return domain.Account{}, apperr.Field("amount", "Less is left.")
		}
		e := domain.Entry{ID: n.ID.String(), Kind: domain.ReturnEntry, Method: "other", Amount: n.Refund.Minor, Invoice: n.InvoiceID, Note: n.ID, At: time.Now()}
		return f.record(of, e, version)
	})
}

// RefundNote implements app.PaymentService.
func (f *Payments) RefundNote(ctx context.Context, n domain.CreditNote, version int64) (domain.NoteRefund, error) {
	f.mu.Lock()
	f.calls++
	f.mu.Unlock()
	return call(ctx, f, func() (domain.NoteRefund, error) { return f.refund(n, version) })
}

func (f *Payments) refund(n domain.CreditNote, version int64) (domain.NoteRefund, error) {
	if r, ok := f.refunds[n.ID]; ok {
		return r.state, nil
	}
	of := n.Account()
	if version >= 0 && version != f.at(of).version {
		return domain.NoteRefund{}, domain.ErrAccountMoved
	}
	received, returned := f.at(of).sums()
	refused := f.Refuse || received-returned-f.held(of, "") < n.Refund.Minor
	status := f.Status
	if status == "" {
		status = "succeeded"
	}
	r := &refund{of: of, state: domain.NoteRefund{ID: "rf_" + n.ID.String()[len("cn_"):], Status: status, Shown: true, Version: 1}}
	for _, p := range n.Parts {
		e := f.at(of).entry(p.Charge)
		refused = refused || e == nil || e.Amount-e.Returned-f.held(of, p.Charge) < p.Amount
		r.state.Parts = append(r.state.Parts, domain.NoteRefundPart{Charge: p.Charge, Amount: p.Amount, Status: status})
	}
	if refused {
		return domain.NoteRefund{}, &domain.RefusedRefundError{Err: errors.New("nothing to refund")}
	}
	if f.refunds == nil {
		f.refunds = map[domain.CreditNoteID]*refund{}
	}
	f.refunds[n.ID] = r
	f.moved(r)
	return r.state, nil
}

// End sets the status of the refund of a credit note, and returns its new state.
func (f *Payments) End(id domain.CreditNoteID, status string) domain.NoteRefund {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.refunds[id]
	r.state.Status, r.state.Version = status, r.state.Version+1
	r.state.Parts = slices.Clone(r.state.Parts)
	for i := range r.state.Parts {
		r.state.Parts[i].Status = status
	}
	f.moved(r)
	return r.state
}

// Refund returns the state of the refund of a credit note, and whether there is one.
func (f *Payments) Refund(id domain.CreditNoteID) (domain.NoteRefund, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.refunds[id]
	if !ok {
		return domain.NoteRefund{}, false
	}
	return r.state, true
}

// Refunded returns the number of refunds by card, their sum and the number of calls.
func (f *Payments) Refunded() (count int, sum int64, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.refunds {
		for _, p := range r.state.Parts {
			if p.Status != "failed" {
				sum += p.Amount
			}
		}
	}
	return len(f.refunds), sum, f.calls
}

// call runs a call with what runs before and after it.
func call[T any](ctx context.Context, f *Payments, do func() (T, error)) (out T, err error) {
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return out, err
		}
	}
	f.mu.Lock()
	out, err = do()
	f.mu.Unlock()
	if err == nil && f.After != nil {
		err = f.After(ctx)
	}
	return out, err
}
