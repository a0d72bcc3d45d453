package app_test

import (
	"context"
	"fmt"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// ofNotes returns what credit notes have refunded of a charge.
func (w *till) ofNotes(charge string) (sum int64) {
	for _, id := range w.refunds {
		r, _ := w.payments.Refund(id)
		for _, p := range r.Parts {
			if p.Status != "failed" && p.Charge == charge {
				sum += p.Amount
			}
		}
	}
	return sum
}

// left returns what was received and is neither returned nor about to be.
func (w *till) left() int64 {
	received, returned := w.payments.Sums(w.account())
	for _, c := range w.taken {
		returned += max(0, w.ofNotes(c.ID)-c.Refunded)
	}
	return max(0, received-returned)
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
	lost := s.of%3 == 0
	w.payments.After = func(context.Context) error {
		if lost {
			return apperr.ErrTimeout
		}
		return nil
	}
	defer func() { w.payments.After = nil }()
	var n domain.CreditNote
	op := w.notes.Create(w.ctx, id, in, anyVersion{})
	err = operation.Run(w.ctx, w.runner(), 0, op, func(ctx context.Context, step func(ctx context.Context, tx pg.Tx) (domain.CreditNote, error)) error {
		return w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = step(ctx, tx)
			return err
		})
	})
	if err != nil {
		return refusal(err)
	}
	if _, ok := w.payments.Refund(n.ID); !ok {
		if lost && n.Way == domain.RefundManual {
			return w.deliver()
		}
		return nil
	}
	w.refunds = append(w.refunds, n.ID)
	for i := range w.taken {
		c := &w.taken[i]
		for _, p := range n.Parts {
			if p.Charge == c.ID {
				c.Refunded += p.Amount
				if err := w.put(*c); err != nil {
					return err
				}
			}
		}
	}
	return w.report(n.ID)
}

// endRefund ends the refund of a credit note: it has succeeded or failed, possibly after it had succeeded.
func (w *till) endRefund(s step) error {
	if len(w.refunds) == 0 {
		return nil
	}
	id := w.refunds[s.of%len(w.refunds)]
	was, _ := w.payments.Refund(id)
	if was.Status == "failed" {
		return nil
	}
	status := "succeeded"
	if s.amt%2 == 0 {
		status = "failed"
	}
	r := w.payments.End(id, status)
	for i := range w.taken {
		c := &w.taken[i]
		for _, p := range r.Parts {
			if p.Charge == c.ID && status == "failed" {
				c.Refunded -= p.Amount
			}
		}
		if err := w.put(*c); err != nil {
			return err
		}
	}
	if err := w.report(id); err != nil {
		return err
	}
	return w.notes.ApplyEvent(w.ctx, ids.New[ids.EventPrefix](), id, was) // late
}

// report delivers the event about a refund.
func (w *till) report(id domain.CreditNoteID) error {
	r, _ := w.payments.Refund(id)
	return w.notes.ApplyEvent(w.ctx, ids.New[ids.EventPrefix](), id, r)
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
		if r, ok := w.payments.Refund(n.ID); ok && (n.Returned > 0) != (r.Status != "failed") {
			out = append(out, fmt.Sprintf("%s has returned %d, its refund is %s", n.Number, n.Returned, r.Status))
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
