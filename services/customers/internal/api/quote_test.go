package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// TestQuoteIsAccepted checks the complete process: a draft is sent and accepted, which creates one booking and opens one invoice.
func TestQuoteIsAccepted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	draft := w.newQuote(ctx, `"deposit_amount":{"amount":2500,"currency":"USD"}`)
	if draft.Status != "draft" || draft.Number != "Q-000001" || draft.Total.Amount != 10000 || draft.Version != 1 || draft.ExpiresAt != nil {
		t.Errorf("drafted: %+v", draft)
	}
	sent := w.onQuote(ctx, draft.ID, "send").is(200).quote()
	if sent.Status != "sent" || sent.SentAt == nil || sent.ExpiresAt == nil || sent.Version != 2 {
		t.Errorf("sent: %+v", sent)
	}
	accepted := w.onQuote(ctx, draft.ID, "accept").is(200).quote()
	created := w.bookings.Created()
	if accepted.Status != "accepted" || accepted.AcceptedAt == nil || accepted.Version != 3 || len(created) != 1 ||
		*accepted.BookingID != created[0].ID.String() || *accepted.BookingStatus != "pending" || len(accepted.InvoiceIDs) != 1 {
		t.Errorf("accepted: %+v, %d bookings", accepted, len(created))
	}
	if n := w.Count(`select count(*) from invoices where total = 2500 and status = 'open' and kind = 'deposit'`); n != 1 {
		t.Errorf("%d invoices of the deposit", n)
	}
	again := w.onQuote(ctx, draft.ID, "accept").is(200).quote()
	if again.Version != 3 || *again.BookingID != *accepted.BookingID || len(w.bookings.Requests()) != 1 {
		t.Errorf("again: %+v", again)
	}
	if got, ok := strings.CutPrefix(w.Types(), "created "); !ok || got != "created updated created accepted" {
		t.Errorf("events: the customer's and %q", got)
	}
}

// quoteInState creates a quote in a state.
func (w *world) quoteInState(ctx context.Context, status string) quote {
	w.T.Helper()
	q := w.newQuote(ctx, "")
	if status == "draft" {
		return q
	}
	if status == "cancelled" {
		return w.onQuote(ctx, q.ID, "cancel").is(200).quote()
	}
	q = w.onQuote(ctx, q.ID, "send").is(200).quote()
	switch status {
	case "sent":
		return q
	case "expired":
		w.Exec(`update quotes set expires_at = now() - interval '1 minute' where id = (select id from quotes order by created_at desc limit 1)`)
		return w.readQuote(ctx, q.ID)
	}
	return w.onQuote(ctx, q.ID, map[string]string{"accepted": "accept", "declined": "decline"}[status]).is(200).quote()
}

// TestEachActionInEachState checks that each action in each state follows the table. A repeated action changes nothing, and a
// change emits one event.
func TestEachActionInEachState(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	moves := map[string]string{ // to the state after the action; "": refused
		"draft send": "sent", "draft accept": "", "draft decline": "", "draft cancel": "cancelled",
		"sent send": "sent", "sent accept": "accepted", "sent decline": "declined", "sent cancel": "cancelled",
		"accepted send": "", "accepted accept": "accepted", "accepted decline": "", "accepted cancel": "",
		"declined send": "", "declined accept": "", "declined decline": "declined", "declined cancel": "",
		"expired send": "", "expired accept": "", "expired decline": "", "expired cancel": "",
		"cancelled send": "", "cancelled accept": "", "cancelled decline": "", "cancelled cancel": "cancelled",
	}
	stamps := map[string]func(quote) *string{
		"sent": func(q quote) *string { return q.SentAt }, "accepted": func(q quote) *string { return q.AcceptedAt },
		"declined": func(q quote) *string { return q.DeclinedAt }, "cancelled": func(q quote) *string { return q.CancelledAt },
	}
	for move, to := range moves {
		from, action, _ := strings.Cut(move, " ")
		q, events := w.quoteInState(ctx, from), len(w.Events())
		if q.Status != from {
			t.Fatalf("%s: created %+v", move, q)
		}
		a := w.onQuote(ctx, q.ID, action)
		got := w.readQuote(ctx, q.ID)
		switch to {
		case "":
			a.is(422, "invalid_status_transition", "status")
			if got.Status != from || got.Version != q.Version || len(w.Events()) != events {
				t.Errorf("%s: refused and changed: %+v", move, got)
			}
		case from:
			if a.is(200); got.Version != q.Version || len(w.Events()) != events {
				t.Errorf("%s: changed to %+v", move, got)
			}
		default:
			a.is(200)
			last := w.Events()
			e := last[len(last)-1]
			if got.Status != to || got.Version != q.Version+1 || stamps[to](got) == nil || e.GetObjectId() != q.ID ||
				e.GetInternal() != (to != "accepted") || e.GetResourceVersion() != got.Version || string(e.GetObject()) != string(w.do(ctx, "GET", "/quotes/"+q.ID, "").Body) {
				t.Errorf("%s: %+v, event %s", move, got, e.GetType())
			}
		}
		frozen := w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"line_items":[{"description":"x","quantity":1,"unit_amount":{"amount":1,"currency":"USD"}}]}`)
		if got.Status == "draft" {
			frozen.is(200)
		} else {
			frozen.is(422, "invalid_request", "line_items")
		}
		if changed := w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"notes":"later","metadata":{"k":"v"}}`).is(200).quote(); changed.Status != got.Status || *changed.Notes != "later" {
			t.Errorf("%s: notes: %+v", move, changed)
		}
	}
}

// TestQuoteExpires checks that a quote expires by the tenant's own clock. It expires for all readers at the same time, and the
// worker writes the expiry with one event.
func TestQuoteExpires(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	frozen := func(d time.Duration) context.Context {
		return in(ctx, func(c *caller.Caller) { c.Clock, c.PolicyVersion = new(at.Add(d)), 2+int64(d) })
	}
	q := w.sentQuote(frozen(0), "")
	if *q.SentAt != "2030-01-01T00:00:00Z" || *q.ExpiresAt != "2030-01-15T05:00:00Z" {
		t.Errorf("sent %s, expires %s", *q.SentAt, *q.ExpiresAt)
	}
	const life = (14*24 + 5) * time.Hour // until the end of a day in New York
	run := func() {
		t.Helper()
		if err := w.expiry.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run() // the tenant's clock is before the expiry, regardless of real time
	w.clock.move(20 * 365 * 24 * time.Hour)
	run()
	w.clock.move(-20 * 365 * 24 * time.Hour)
	if got := w.readQuote(frozen(life-1000), q.ID); got.Status != "sent" {
		t.Errorf("one microsecond before: %+v", got)
	}
	late := frozen(life)
	got := w.do(late, "GET", "/quotes/"+q.ID, "").is(200)
	if e := got.quote(); e.Status != "expired" || e.Version != 3 || got.Header.Get("ETag") != `"3"` {
		t.Errorf("expired: %+v, %s", e, got.Header.Get("ETag"))
	}
	for query, n := range map[string]int{"expired": 1, "sent": 0, "sent,expired": 1, "draft": 0} {
		if rows := w.do(late, "GET", "/quotes?status="+query, "").is(200).list(); len(rows.Data) != n {
			t.Errorf("status=%s finds %d", query, len(rows.Data))
		}
	}
	w.onQuote(late, q.ID, "accept").is(422, "invalid_status_transition")
	w.onQuote(late, q.ID, "accept", `If-Match: "2"`).is(412)
	events := len(w.Events())
	w.Exec(`update test_clocks set frozen_at = '2030-01-15T05:00:00Z', version = 1000`)
	run()
	run()
	all := w.Events()
	if len(all) != events+1 || all[events].GetType() != "quote.updated" || !all[events].GetInternal() || !strings.Contains(string(all[events].GetPreviousAttributes()), `"status":"sent"`) {
		t.Errorf("%d events after %d", len(all), events)
	}
	if again := w.readQuote(late, q.ID); again.Status != "expired" || again.Version != 3 {
		t.Errorf("written: %+v", again)
	}
	live := pgtest.Ctx(t, caller.Live) // real time
	r := w.sentQuote(live, "")
	w.clock.move(15*24*time.Hour + time.Second)
	run()
	w.clock.move(-16 * 24 * time.Hour)
	if got := w.readQuote(live, r.ID); got.Status != "expired" || got.Version != 3 {
		t.Errorf("live: %+v", got)
	}
}

// TestLapsedQuoteIsChanged checks that an action on a lapsed quote writes its expiry first. The response has the next version, and
// each version has its event.
func TestLapsedQuoteIsChanged(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.quoteInState(ctx, "expired")
	events := len(w.Events())
	if got := w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"notes":"n"}`, `If-Match: "3"`).is(200).quote(); got.Version != 4 || got.Status != "expired" {
		t.Errorf("changed %+v", got)
	}
	if n := len(w.Events()) - events; n != 2 {
		t.Errorf("%d events", n)
	}
}

func TestSendNeedsADayAndTime(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.newQuote(ctx, `"expires_at":"2031-01-01T00:00:00Z"`)
	w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"event_date":null}`).is(200)
	w.onQuote(ctx, q.ID, "send").is(422, "invalid_request", "event_date")
	w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"event_date":"2031-05-01"}`).is(200)
	late := in(ctx, func(c *caller.Caller) { c.Clock = new(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)) })
	w.onQuote(late, q.ID, "send").is(422, "invalid_request", "expires_at")
	if got := w.onQuote(ctx, q.ID, "send").is(200).quote(); *got.ExpiresAt != "2031-01-01T00:00:00Z" {
		t.Errorf("sent %+v", got)
	}
	declined := w.do(ctx, "POST", "/quotes/"+q.ID+"/decline", `{"reason":"too dear"}`).is(200).quote()
	if deref(declined.Reason) != "too dear" {
		t.Errorf("declined %+v", declined)
	}
}

// TestSendingQuotesTheLead checks that sending a quote sets its lead to quoted, once, from the states that allow it.
func TestSendingQuotesTheLead(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for status, want := range map[string]string{"new": "quoted", "contacted": "quoted", "qualified": "quoted", "quoted": "quoted", "lost": "lost"} {
		l := w.lead(ctx, "")
		w.Exec(`update leads set status = $1, lost_reason = case $1 when 'lost' then 'x' end where id = (select id from leads order by created_at desc limit 1)`, status)
		q := w.newQuote(ctx, `"lead_id":%q`, l.ID)
		events := len(w.Events())
		w.onQuote(ctx, q.ID, "send").is(200)
		w.onQuote(ctx, q.ID, "send").is(200)
		moved := 1
		if status == want {
			moved = 0
		}
		if got := w.do(ctx, "GET", "/leads/"+l.ID, "").is(200).lead(); got.Status != want || len(w.Events())-events != 1+moved {
			t.Errorf("%s: %s, %d events", status, got.Status, len(w.Events())-events)
		}
	}
}

// TestQuotesAreIsolated checks that two tenants in two modes each see only their own quotes, and that numbers begin at 1 in each.
func TestQuotesAreIsolated(t *testing.T) {
	t.Parallel()
	w, tenant, other := newWorld(t), ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	all := []context.Context{
		pgtest.CtxOf(t, tenant, caller.Test), pgtest.CtxOf(t, tenant, caller.Live), pgtest.CtxOf(t, other, caller.Test), pgtest.CtxOf(t, other, caller.Live),
	}
	created := make([]quote, len(all))
	for i, me := range all {
		if created[i] = w.sentQuote(me, `"metadata":{"k":"v"}`); created[i].Number != "Q-000001" {
			t.Errorf("number %s", created[i].Number)
		}
	}
	for i, q := range created {
		for j, them := range all {
			status, code := 404, "quote_not_found"
			switch {
			case i == j:
				continue
			case i/2 == j/2:
				status, code = 403, "mode_mismatch"
			}
			w.do(them, "GET", "/quotes/"+q.ID, "").is(status, code)
			w.do(them, "PATCH", "/quotes/"+q.ID, `{"notes":"n"}`).is(status, code)
			for _, action := range []string{"send", "accept", "decline", "cancel"} {
				w.onQuote(them, q.ID, action).is(status, code)
			}
			body := fmt.Sprintf(`{"customer_id":%q,%s}`, q.CustomerID, lines)
			w.do(them, "POST", "/quotes", body).is(422, "invalid_request", "customer_id")
		}
	}
	for _, me := range all {
		for _, query := range []string{"", "?status=sent", "?metadata[k]=v"} {
			if got := w.do(me, "GET", "/quotes"+query, "").is(200).list(); len(got.Data) != 1 {
				t.Errorf("%q: %d quotes", query, len(got.Data))
			}
		}
	}
	w.do(all[0], "GET", "/quotes/qt_x", "").is(404, "quote_not_found")
}
