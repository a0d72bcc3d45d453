package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// moneyModel makes random changes of the money of one booking, and knows what its account must contain.
type moneyModel struct {
	*world

	ctx       context.Context
	rnd       *rand.Rand
	booking   domain.Booking
	cards     []intent
	cash      map[ids.Payment]int64 // payments that are not reversed
	notes     int64                 // returned outside the gateway
	elsewhere bool                  // whether others have refunded anything, or a bank has taken money back
}

// refunds have these states at the gateway when they are created.
var createdStates = []domain.RefundStatus{domain.RefundSucceeded, domain.RefundPending, domain.RefundRequiresAction}

func (m *moneyModel) amount() int64 { return 50 + m.rnd.Int64N(400) }

func (m *moneyModel) card() (intent, bool) {
	if len(m.cards) == 0 {
		return intent{}, false
	}
	return m.cards[m.rnd.IntN(len(m.cards))], true
}

// left returns what the gateway and the payments outside it have received and not returned.
func (m *moneyModel) left() int64 {
	received, returned := m.sums()
	return received - returned
}

// sums returns what was received and returned, as the gateway and the recorded payments say.
func (m *moneyModel) sums() (received, returned int64) {
	for _, p := range m.cards {
		m.gateway.Change(p.ID, func(s *domain.Snapshot) {
			received, returned = received+s.Received, returned+s.Refunded
			for _, d := range s.Disputes {
				if d.Status == domain.DisputeLost {
					returned += min(d.Amount.Minor, s.Received-s.Refunded)
				}
			}
		})
	}
	for _, minor := range m.cash {
		received += minor
	}
	return received, returned + m.notes
}

// step makes one change, and returns its name.
func (m *moneyModel) step() string {
	p, paid := m.card()
	names := []string{"card", "cash", "reverse", "return", "refund", "refund booking", "note", "dashboard", "end refund", "dispute", "read", "lost refund"}
	name := names[m.rnd.IntN(len(names))]
	minor := m.amount()
	switch name {
	case "card":
		m.cards = append(m.cards, m.paidOf(m.ctx, m.booking, minor))
	case "cash":
		id := ids.New[ids.PaymentPrefix]()
		m.receive(m.ctx, m.booking.ID, id, minor, domain.AnyVersion).is(200)
		m.cash[id] = minor
	case "reverse":
		for id, minor := range m.cash {
			backed := m.left() >= minor
			got := m.reverse(m.ctx, m.booking.ID, id)
			if got.Status != 200 && (got.Status != 422 || backed && !m.elsewhere && m.settled()) {
				m.T.Fatalf("reversal of %d of %d: %s", minor, m.left(), got.Body)
			}
			if got.Status == 200 {
				delete(m.cash, id)
			}
			break
		}
	case "return":
		got := m.giveBack(m.ctx, m.booking.ID, ids.New[ids.CreditNotePrefix](), minor, domain.AnyVersion)
		if got.Status == 200 {
			m.notes += minor
		} else if got.Status != 422 {
			m.T.Fatalf("%s", got.Body)
		}
	case "refund", "lost refund":
		if paid {
			m.gateway.RefundStatus = createdStates[m.rnd.IntN(len(createdStates))]
			if name == "lost refund" {
				m.gateway.After = onCall("refund", 1, func() error { return errLost })
			}
			m.refund(m.ctx, refundOf(p, fmt.Sprintf(`,"amount_minor":%d`, minor)))
			m.gateway.After = nil
		}
	case "refund booking":
		m.gateway.RefundStatus = createdStates[m.rnd.IntN(len(createdStates))]
		m.refund(m.ctx, refundOfBooking(m.booking, fmt.Sprintf(`,"amount_minor":%d`, minor)))
	case "note":
		if paid {
			m.noteRefund(m.ctx, ids.New[ids.CreditNotePrefix](), m.booking, part{p, minor})
		}
	case "dashboard":
		if paid {
			done := false
			m.gateway.Change(p.ID, func(s *domain.Snapshot) { minor = min(minor, s.Received-s.Refunded); done = minor > 0 })
			if done {
				m.elsewhere = true
				m.gateway.Dashboard(p.ID, minor)
			}
		}
	case "end refund":
		if list := m.gateway.Refunds(); len(list) > 0 {
			r := list[m.rnd.IntN(len(list))]
			if r.Status.Holds() && !strings.HasPrefix(r.ID, "re_dashboard") { // a late failure too
				m.gateway.EndRefund(r.ID, []domain.RefundStatus{domain.RefundSucceeded, domain.RefundFailed, domain.RefundCanceled}[m.rnd.IntN(3)])
				m.readRefund(m.ctx, string(r.Intent), r.ID)
			}
		}
	case "dispute":
		if paid {
			m.gateway.Change(p.ID, func(s *domain.Snapshot) {
				s.DisputesRead = true
				status := []domain.DisputeStatus{domain.DisputeNeedsResponse, "won", "lost"}[m.rnd.IntN(3)]
				s.Disputes = []domain.Dispute{{ID: "dp_" + p.ID, Status: status, Amount: money.Amount{Minor: minor, Currency: "USD"}}}
				m.elsewhere = m.elsewhere || status == domain.DisputeLost
			})
			m.refresh(m.ctx, p.ID)
		}
	case "read":
		m.completeRefunds()
		for _, p := range m.cards {
			m.refresh(m.ctx, p.ID)
		}
	}
	return name
}

// settled reports whether no refund is under way and all intents were read.
func (m *moneyModel) settled() bool {
	return m.Count(`select coalesce(sum(held), 0) from money_accounts`) == 0
}

// TestMoneyModel makes random changes of the money of a booking by all ways, and checks after each step that the sums of its account
// equal those of its intents and entries, and in the end those of the gateway.
func TestMoneyModel(t *testing.T) {
	t.Parallel()
	for range 3 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.impatient()
			ctx := w.tenant()
			m := &moneyModel{
				world: w, ctx: ctx, rnd: rand.New(rand.NewPCG(seed, 0)), booking: w.bookings.Add(ctx, "confirmed", 1<<30, 1<<30, "USD"),
				cash: map[ids.Payment]int64{},
			}
			var steps []string
			for range 60 {
				steps = append(steps, m.step())
				w.balanced()
				a := w.account(ctx, m.booking.ID, "")
				if over := a.Returned + a.Held - a.Received; over > 0 && !m.elsewhere {
					t.Fatalf("%d more than received: %+v after %v", over, a, steps)
				}
				if t.Failed() {
					t.Fatalf("after %v", steps)
				}
			}
			w.completeRefunds()
			for _, p := range m.cards {
				w.refresh(ctx, p.ID)
			}
			w.balanced()
			received, returned := m.sums()
			if a := w.account(ctx, m.booking.ID, ""); a.Received != received || a.Returned != returned {
				t.Errorf("%+v, and the gateway and the payments have %d and %d, after %v", a, received, returned, steps)
			}
		})
	}
}
