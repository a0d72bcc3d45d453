package peerstest

import (
	"context"
	"errors"
	"sync"

	"holdfast.dev/services/customers/internal/domain"
)

// Payments replaces the payments service. It creates one refund per credit note.
type Payments struct {
	// Before runs before a call takes effect, and After runs afterwards. Each can return the error that the caller sees.
	Before, After func(ctx context.Context) error
	// Refuse makes payments refuse new refunds.
	Refuse bool
	// Status is the status of new refunds. "": succeeded.
	Status string

	mu      sync.Mutex
	refunds map[domain.CreditNoteID]domain.NoteRefund
	calls   int
}

// RefundNote implements app.PaymentService.
func (f *Payments) RefundNote(ctx context.Context, n domain.CreditNote) (domain.NoteRefund, error) {
	f.mu.Lock()
	f.calls++
	f.mu.Unlock()
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return domain.NoteRefund{}, err
		}
	}
	r, err := f.refund(n)
	if err == nil && f.After != nil {
		err = f.After(ctx)
	}
	return r, err
}

func (f *Payments) refund(n domain.CreditNote) (domain.NoteRefund, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.refunds[n.ID]; ok {
		return r, nil
	}
	if f.Refuse {
		return domain.NoteRefund{}, &domain.RefusedRefundError{Err: errors.New("nothing to refund")}
	}
	status := f.Status
	if status == "" {
		status = "succeeded"
	}
	r := domain.NoteRefund{
		ID: "rf_" + n.ID.String()[len("cn_"):], Status: status, Shown: true, Version: 1,
	}
	for _, p := range n.Parts {
		r.Parts = append(r.Parts, domain.NoteRefundPart{Charge: p.Charge, Amount: p.Amount, Status: status})
	}
	if f.refunds == nil {
		f.refunds = map[domain.CreditNoteID]domain.NoteRefund{}
	}
	f.refunds[n.ID] = r
	return r, nil
}

// End sets the status of the refund of a credit note, and returns its new state.
func (f *Payments) End(id domain.CreditNoteID, status string) domain.NoteRefund {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.refunds[id]
	r.Status, r.Version = status, r.Version+1
	r.Parts = append([]domain.NoteRefundPart(nil), r.Parts...)
	for i := range r.Parts {
		r.Parts[i].Status = status
	}
	f.refunds[id] = r
	return r
}

// Refunded returns the number of refunds, their sum and the number of calls.
func (f *Payments) Refunded() (count int, sum int64, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.refunds {
		for _, p := range r.Parts {
			if p.Status != "failed" {
				sum += p.Amount
			}
		}
	}
	return len(f.refunds), sum, f.calls
}
