package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// noteRefund is the refund of a credit note at the gateway of a till.
type noteRefund struct {
	note  domain.CreditNoteID
	state domain.NoteRefund
	held  bool // its money is returned, or may be
}

// noteGateway replaces the payments service. It refunds the charges of the till, unless they have less left than requested. Each third
// response is lost.
type noteGateway struct{ w *till }

// RefundNote implements app.PaymentService.
func (g *noteGateway) RefundNote(_ context.Context, n domain.CreditNote) (domain.NoteRefund, error) {
	for _, r := range g.w.refunds {
		if r.note == n.ID {
			return r.state, nil
		}
	}
	r := &noteRefund{note: n.ID, held: true, state: domain.NoteRefund{ID: "rf_" + n.ID.String()[3:], Status: "pending", Shown: true, Version: 1}}
	for _, p := range n.Parts {
		if c := g.w.charge(p.Charge); c.Refunded+p.Amount > c.Amount.Minor {
			return domain.NoteRefund{}, &domain.RefusedRefundError{Err: errors.New("nothing to refund")}
		}
		r.state.Parts = append(r.state.Parts, domain.NoteRefundPart{Charge: p.Charge, Amount: p.Amount, Status: "pending"})
	}
	for _, p := range n.Parts {
		g.w.charge(p.Charge).Refunded += p.Amount
	}
	g.w.refunds = append(g.w.refunds, r)
	if len(g.w.refunds)%3 == 0 {
		return domain.NoteRefund{}, apperr.ErrTimeout
	}
	return r.state, nil
}

func (w *till) charge(id string) *domain.Charge {
	return &w.taken[slices.IndexFunc(w.taken, func(c domain.Charge) bool { return c.ID == id })]
}

// ofNotes returns what credit notes have refunded of a charge.
func (w *till) ofNotes(charge string) (sum int64) {
	for _, r := range w.refunds {
		for _, p := range r.state.Parts {
			if r.held && p.Charge == charge {
				sum += p.Amount
			}
		}
	}
	return sum
}

// credit creates a credit note of an invoice, and delivers the events about the charges that it refunds.
func (w *till) credit(s step, id domain.InvoiceID) error {
	v, err := store.Invoice(w.ctx, w.DB.App.Read(w.ctx), id)
	if err != nil {
		return err
	}
	in := domain.CreditNoteInput{Way: map[string]domain.RefundWay{"credit": domain.RefundNone, "creditCash": domain.RefundManual, "creditCard": domain.RefundGateway}[s.kind]}
	if s.amt%4 > 0 {
		in.Amount = &money.Amount{Minor: 1 + int64(s.amt)%max(v.Uncredited().Minor, 1), Currency: "USD"}
	}
	before := len(w.refunds)
	runner := operation.Runner{DB: w.DB.App, Keys: &idemstore.Store{DB: w.DB.App, Now: time.Now}}
	if err := refusal(operation.Resume(w.ctx, runner, w.notes.Create(w.ctx, id, in, anyVersion{}))); err != nil {
		return err
	}
	for _, r := range w.refunds[before:] {
		if err := w.report(r); err != nil {
			return err
		}
	}
	return nil
}

// endRefund ends the refund of a credit note: it has succeeded or failed, possibly after it had succeeded.
func (w *till) endRefund(s step) error {
	if len(w.refunds) == 0 {
		return nil
	}
	r := w.refunds[s.of%len(w.refunds)]
	if !r.held {
		return nil
	}
	r.state.Status = "succeeded"
	if s.amt%2 == 0 {
		r.state.Status, r.held = "failed", false
	}
	r.state.Version++
	r.state.Parts = slices.Clone(r.state.Parts)
	for i := range r.state.Parts {
		p := &r.state.Parts[i]
		if p.Status = r.state.Status; !r.held {
			w.charge(p.Charge).Refunded -= p.Amount
		}
	}
	late := r.state
	late.Version, late.Status = 1, "pending"
	if err := w.report(r); err != nil {
		return err
	}
	return w.notes.ApplyEvent(w.ctx, ids.New[ids.EventPrefix](), r.note, late)
}

// report delivers the events about a refund and its charges, and lets the worker allocate money that the refund made available.
func (w *till) report(r *noteRefund) error {
	for _, p := range r.state.Parts {
		i := slices.IndexFunc(w.taken, func(c domain.Charge) bool { return c.ID == p.Charge })
		w.taken[i].Version++
		if err := w.deliver(i); err != nil {
			return err
		}
	}
	if err := w.notes.ApplyEvent(w.ctx, ids.New[ids.EventPrefix](), r.note, r.state); err != nil {
		return err
	}
	return w.worker.Run(w.ctx)
}

// wrongNotes describes what does not add up on the credit notes of an invoice.
func (w *till) wrongNotes(v domain.Invoice) (string, error) {
	rows, err := store.CreditNotes(w.ctx, w.DB.App.Read(w.ctx), store.CreditNoteFilter{Invoice: &v.ID}, page.Request{Limit: 100})
	if err != nil {
		return "", err
	}
	var out []string
	var credited, returned, card int64
	for _, n := range rows.Items {
		credited, returned = credited+n.Total.Minor, returned+n.Returned
		if n.Way == domain.RefundGateway {
			card += n.Returned
		}
		for _, r := range w.refunds {
			if r.note == n.ID && (n.Returned > 0) != r.held {
				out = append(out, fmt.Sprintf("%s has returned %d, its refund is %s", n.Number, n.Returned, r.state.Status))
			}
		}
		last, err := w.lastObject(n.ID.String())
		if err != nil {
			return "", err
		}
		body, err := contract.Encode(view.CreditNote(n, api.Mode(caller.Test)))
		if err != nil {
			return "", err
		}
		if differs := string(outbox.Diff(last, body)); differs != "{}" {
			out = append(out, fmt.Sprintf("the last event of %s differs in %s", n.Number, differs))
		}
	}
	if credited != v.Credited || returned != v.Returned.All || card != v.Returned.Card || len(rows.Items) != v.CreditNotes || v.Credited > v.Total.Minor {
		out = append(out, fmt.Sprintf("%s is credited %d of %d, returned %+v; its credit notes are %d, returned %d, by card %d",
			v.ID, v.Credited, v.Total.Minor, v.Returned, credited, returned, card))
	}
	return strings.Join(out, "\n"), nil
}
