package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// moneyServices are the services that know amounts.
var moneyServices = []string{"bookings", "customers", "payments"}

// caughtUp waits until the services that know amounts have published all their events and handled those of each other.
func (p *platform) caughtUp(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(p.env["KAFKA_BROKERS"], ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	var databases []*pgx.Conn
	for _, service := range moneyServices {
		databases = append(databases, p.database(t, service))
	}
	// handled returns the sum of the offsets that the groups have handled, if no message is left.
	handled := func() (sum int64, all bool) {
		groups := make([]string, len(moneyServices))
		for n, service := range moneyServices {
			groups[n] = "holdfast." + service
		}
		lags, err := admin.Lag(t.Context(), groups...)
		if err != nil || lags.Error() != nil || len(lags) != len(groups) {
			return 0, false
		}
		for _, group := range lags {
			if group.Lag.Total() != 0 {
				return 0, false
			}
			for _, partitions := range group.Lag {
				for _, partition := range partitions {
					sum += partition.End.Offset
				}
			}
		}
		return sum, true
	}
	await(t, "the consumers have caught up", func() bool {
		before, ok := handled()
		for _, db := range databases {
			ok = ok && rows(t, db, `select count(*)::text from outbox`)[0] == "0"
		}
		after, all := handled()
		return ok && all && before == after
	})
	for _, db := range databases {
		_ = db.Close(t.Context())
	}
}

// withoutConsumer stops the consumer of a service, which can record no event, and returns a function that resumes it.
func (p *platform) withoutConsumer(t *testing.T, service string) (resume func()) {
	t.Helper()
	db := p.database(t, service)
	execute(t, db, `alter table inbox add constraint stopped check (false) not valid`)
	return sync.OnceFunc(func() { execute(t, db, `alter table inbox drop constraint stopped`) })
}

// withoutRefundReads makes payments read no refund from Stripe, and returns a function that makes up for it.
func (p *platform) withoutRefundReads(t *testing.T) (resume func()) {
	t.Helper()
	db := p.database(t, "payments")
	execute(t, db, `create function read_later() returns trigger language plpgsql as
		$$ begin new.due_at := new.due_at + interval '1 hour'; return new; end $$`)
	execute(t, db, `create trigger read_later before insert on gateway_events for each row when (new.type like '%refund%') execute function read_later()`)
	return sync.OnceFunc(func() {
		execute(t, db, `drop function read_later cascade`)
		execute(t, db, `update gateway_events set due_at = now() where due_at is not null`)
	})
}

// moneyScenario is a sequence of steps for a tenant, each with the only right answer after "=".
type moneyScenario struct{ name, tenant, steps string }

// invoiced creates a booking of 1000 with an opened invoice.
const invoiced = `package 1000 = 201 1000 | draft 1000 = 201 draft 1000 due 1000 | open = 200 open 1000 due 1000 | `

// moneyScenarios contains the orders of events that lead to a wrong amount if a decision depends on a copy of an amount.
var moneyScenarios = []moneyScenario{
	{"refund, then a note with a refund", "", invoiced + `card 1000 = 201 1000 | refund 400 = 201 400 | note 400 gateway = 201 400 refund 0`},
	{"refund, then cancel", "half", `package 1000 = 201 1000 | card 1000 = 201 1000 | refund 400 = 201 400 | cancel = 200 1000 refund 300`},
	{"cash, then a card", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | intent = 422 booking_already_paid booking_id
			| intent 1000 = 422 booking_already_paid booking_id`},
	{"cash, then cancel", "half", invoiced + `cash 1000 = 200 paid 1000 due 0 | cancel = 200 1000 refund 500`},
	{"reprice, then the balance", "", `package 11900 = 201 11900 | balance = 201 draft 11900 due 11900 | price 5000 = 200 | reprice = 200 5000
			| open = 200 open 5000 due 5000 | intent = 201 5000`},
	{"note, then a card", "", invoiced + `note 400 = 201 400 refund 0 | pay 600 = 201 600 | intent = 422 booking_already_paid booking_id`},
	{"manual refund, then a refund by card", "", invoiced + `card 1000 = 201 1000 | note rest manual = 201 1000 refund 1000 | refund 1000 = 409 nothing_to_refund`},
	{"cash, then a refund in cash", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | refund 400 cash = 201 400
			| refund 601 cash = 422 invalid_request amount_minor | refund 600 bank_transfer = 201 600
			| refund 1 cash = 409 nothing_to_refund`},
	{"refund in cash, then by card", "", invoiced + `card 600 = 201 600 | cash 400 = 200 paid 1000 due 0 | refund 700 cash = 201 700
			| refund 600 = 422 invalid_request amount_minor | refund 300 = 201 300`},
	{"refund in cash, then cancel", "half", `package 1000 = 201 1000 | card 1000 = 201 1000 | refund 400 cash = 201 400 | cancel = 200 1000 refund 300`},
	{"refund in cash, then a note", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | refund 400 cash = 201 400 | note 400 manual = 201 400 refund 0`},
	{"refund in cash, then reverse", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | refund 400 cash = 201 400 | reverse = 422 invalid_request payment_id`},
	{"gateway refund, then a card for the new invoice", "", invoiced + `card 1000 = 201 1000 | note rest gateway = 201 1000 refund 1000 | draft 1200 = 201 draft 1200 due 1200
			| open = 200 open 1200 due 1200 | pay = 201 1200`},
	{"note without a refund, then a new invoice", "", invoiced + `card 1000 = 201 1000 | note rest none = 201 1000 refund 0 | draft 1200 = 201 draft 1200 due 1200
			| open = 200 partially_paid 1200 due 200 | pay = 201 200`},
	{"card, then cash", "", invoiced + `card 1000 = 201 1000 | cash 100 = 422 invalid_status_transition status`},
	{"refund, then a note of everything", "", invoiced + `card 1000 = 201 1000 | refund 1000 = 201 1000 | note rest gateway = 201 1000 refund 0`},
	{"note, then a refund", "", invoiced + `card 1000 = 201 1000 | note 400 gateway = 201 400 refund 400 | refund 700 = 422 invalid_request amount_minor
			| refund 600 = 201 600 | refund 1 = 409 nothing_to_refund`},
	{"note, then another", "", invoiced + `card 1000 = 201 1000 | note 400 gateway = 201 400 refund 400 | note 700 gateway = 422 invalid_request amount
			| note rest gateway = 201 600 refund 600`},
	{"note without a refund, then a refund", "", invoiced + `card 1000 = 201 1000 | note 400 = 201 400 refund 0 | refund 1000 = 201 1000`},
	{"part by hand, then by card", "", invoiced + `card 1000 = 201 1000 | note 400 manual = 201 400 refund 400 | refund 700 = 422 invalid_request amount_minor
			| refund 600 = 201 600`},
	{"cash, reverse, then a card", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | reverse = 200 open 1000 due 1000 | intent = 201 1000`},
	{"manual refund, then reverse", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | note 400 manual = 201 400 refund 400 | reverse = 422 invalid_request payment_id`},
	{"full note, then reverse", "", invoiced + `cash 1000 = 200 paid 1000 due 0 | note rest = 201 1000 refund 0 | reverse = 200 credited 1000 due 0`},
	{"refund, then cancel, with an invoice", "half", invoiced + `card 1000 = 201 1000 | refund 400 = 201 400 | cancel = 200 1000 refund 300`},
	{"card, then cancel", "half", `package 1000 = 201 1000 | card 1000 = 201 1000 | cancel = 200 1000 refund 500`},
	{"cancel, then a card", "half", `package 1000 = 201 1000 | cancel = 200 1000 refund 0 | intent = 422 booking_not_payable booking_id`},
	{"cancel, then a refund", "half", `package 1000 = 201 1000 | card 1000 = 201 1000 | cancel = 200 1000 refund 500 | cancel = 200 1000 refund 500`},
	{"note, then cancel", "half", invoiced + `card 1000 = 201 1000 | note 400 gateway = 201 400 refund 400 | cancel = 200 1000 refund 300`},
	{"card and cash, then cancel", "half", invoiced + `card 500 = 201 500 | cash 500 = 200 paid 1000 due 0 | cancel = 200 1000 refund 500`},
	{"cash, reverse, then cancel", "half", invoiced + `cash 1000 = 200 paid 1000 due 0 | reverse = 200 open 1000 due 1000 | cancel = 200 1000 refund 0`},
	{"cancel, then cash", "half", invoiced + `cancel = 200 1000 refund 0 | cash 1000 = 200 paid 1000 due 0`},
	{"partial payments", "", invoiced + `card 300 = 201 300 | cash 200 = 200 partially_paid 1000 due 500 | intent = 201 500
			| card 501 = 422 invalid_request amount_minor | card 500 = 201 500
			| cash 1 = 422 invalid_status_transition status | intent = 422 booking_already_paid booking_id`},
	{"void, then a card", "", invoiced + `void = 200 void 1000 due 0 | intent = 201 1000`},
	{"cash, then void", "", invoiced + `cash 100 = 200 partially_paid 1000 due 900 | void = 422 invalid_status_transition status`},
	{"card, then void", "", invoiced + `card 100 = 201 100 | void = 422 invalid_status_transition status`},
	{"card, then uncollectible", "", invoiced + `card 1000 = 201 1000 | uncollectible = 422 invalid_status_transition status`},
	{"uncollectible, then a card", "", invoiced + `uncollectible = 200 uncollectible 1000 due 1000 | pay 400 = 201 400 | cash 600 = 200 paid 1000 due 0
			| pay = 422 booking_already_paid booking_id`},
	{"refund of all, then its invoice", "", `package 1000 = 201 1000 | card 1000 = 201 1000 | refund 1000 = 201 1000 | draft 1000 = 201 draft 1000 due 1000
			| open = 200 open 1000 due 1000 | intent = 201 1000`},
	{"refund, then two notes", "", invoiced + `card 1000 = 201 1000 | refund 300 = 201 300 | note 600 gateway = 201 600 refund 300
			| note 100 gateway = 201 100 refund 100`},
	{"refund, then a manual note", "", invoiced + `card 1000 = 201 1000 | refund 400 = 201 400 | note 400 manual = 201 400 refund 0`},
	{"two bookings", "", invoiced + `package 1000 = 201 1000 | draft 1000 = 201 draft 1000 due 1000 | open = 200 open 1000 due 1000
			| card@0 1000 = 201 1000 | intent@1 = 201 1000 | cash@1 1000 = 200 paid 1000 due 0
			| intent@1 = 422 booking_already_paid booking_id | refund@1 100 = 409 nothing_to_refund
			| refund@0 1000 = 201 1000`},
	{"deposit in cash", "", `quote 1000 200 = 200 1000 | cash 200 = 200 paid 200 due 0 | intent = 201 800 | card 800 = 201 800
			| intent = 422 booking_already_paid booking_id`},
	{"deposit, then the balance", "", `quote 1000 200 = 200 1000 | pay 200 = 201 200 | balance = 201 draft 800 due 800 | open = 200 open 800 due 800
			| intent = 201 800 | cash 800 = 200 paid 800 due 0 | intent = 422 booking_already_paid booking_id`},
	{"balance before the deposit", "", `quote 1000 200 = 200 1000 | balance = 201 draft 800 due 800 | open = 200 open 800 due 800
			| card 1000 = 201 1000 | cash@0 1 = 422 invalid_status_transition status
			| cash@1 1 = 422 invalid_status_transition status`},
	{"two deposits", "", `package 1000 = 201 1000 | draft 200 = 201 draft 200 due 200 | open = 200 open 200 due 200
			| draft 300 = 201 draft 300 due 300 | open = 200 open 300 due 300 | card 500 = 201 500
			| balance = 201 draft 500 due 500 | open = 200 open 500 due 500 | intent = 201 500`},
	{"two payments of everything", "", `package 1000 = 201 1000 | intent 1000 = 201 1000 | intent 1000 = 201 1000 | confirm@0 = | confirm@1 =
			| draft 1000 = 201 draft 1000 due 1000 | open = 200 paid 1000 due 0 | refund 2000 = 201 2000
			| refund 1 = 409 nothing_to_refund`},
	{"card, then its invoice", "", `package 1000 = 201 1000 | card 1000 = 201 1000 | draft 1000 = 201 draft 1000 due 1000
			| open = 200 paid 1000 due 0 | note 400 gateway = 201 400 refund 400`},
	{"part by card, then a note", "", invoiced + `card 300 = 201 300 | note 800 gateway = 201 800 refund 100 | intent = 422 booking_already_paid booking_id`},
	{"credited deposit, then the balance", "", `quote 1000 200 = 200 1000 | pay 200 = 201 200 | note rest = 201 200 refund 0
			| balance = 201 draft 1000 due 1000 | open = 200 partially_paid 1000 due 800 | intent = 201 800`},
	{"invoice without a booking", "", `own 1000 = 201 draft 1000 due 1000 | open = 200 open 1000 due 1000
			| cash 600 = 200 partially_paid 1000 due 400 | note 700 manual = 201 700 refund 300
			| reverse = 422 invalid_request payment_id | note rest manual = 201 300 refund 300`},
	{"card, then a lower price", "", `package 1000 = 201 1000 | card 1000 = 201 1000 | price 500 = 200 | reprice = 200 500
			| intent = 422 booking_already_paid booking_id | refund 500 = 201 500`},
	{"card, then a higher price", "", `package 1000 = 201 1000 | card 1000 = 201 1000 | price 1500 = 200 | reprice = 200 1500 | intent = 201 500`},
	{"more guests", "", `package 1000 = 201 1000 | guests 3 = 200 1000 | reprice = 200 3000 | intent = 201 3000`},
	{"disputed payment", "", invoiced + `card 1000 = 201 1000 | dispute = | refund 1000 = 422 payment_disputed payment_intent_id | close won =
			| refund 1000 = 201 1000`},
	{"lost dispute, then cancel", "half", `package 1000 = 201 1000 | card 1000 = 201 1000 | dispute = | close lost = | cancel = 200 1000 refund 0`},
	{"refund of one payment", "", invoiced + `card 600 = 201 600 | card 400 = 201 400 | refund-card@0 601 = 422 invalid_request amount_minor
			| refund-card@0 600 = 201 600 | refund 500 = 422 invalid_request amount_minor | refund 400 = 201 400`},
	{"unpriced", "", `unpriced = 201 0 | draft 700 = 201 draft 700 due 700 | open = 200 open 700 due 700
			| intent = 422 invalid_request amount_minor | card 700 = 201 700 | intent = 422 invalid_request amount_minor`},
}

// moneyRun is a scenario that is being executed.
type moneyRun struct {
	moneyScenario
	*moneyCase

	steps []string // that are left
	wrong []string
	ended bool // by a 503
}

// runScenarios executes all scenarios, the nth step of all of them at the same time, and calls before with n before it. It returns
// those that were not ended by a 503.
func runScenarios(t *testing.T, round string, before func(n int)) []*moneyRun {
	t.Helper()
	var runs []*moneyRun
	merchants := map[string]merchant{"": newMerchant(t, "USD"), "half": owing(t)} // of this round: a tenant has at most 500 packages
	for _, s := range moneyScenarios {
		runs = append(runs, &moneyRun{s, merchants[s.tenant].moneyCase(t), strings.Split(s.steps, "|"), nil, false})
	}
	list := slices.Clone(runs)
	for n := 0; len(list) > 0; n++ {
		before(n)
		var all sync.WaitGroup
		for _, r := range list {
			all.Go(func() { r.next(t) })
		}
		all.Wait()
		list = slices.DeleteFunc(list, func(r *moneyRun) bool { return len(r.steps) == 0 || r.ended })
	}
	for _, r := range runs {
		if len(r.wrong) > 0 {
			t.Errorf("%s, %s:\n\t%s", r.name, round, strings.Join(r.wrong, "\n\t"))
		}
	}
	complete := slices.DeleteFunc(slices.Clone(runs), func(r *moneyRun) bool { return r.ended })
	t.Logf("%s: %d of %d scenarios were ended by a 503", round, len(runs)-len(complete), len(runs))
	return complete
}

// next executes the next step and compares its answer.
func (r *moneyRun) next(t *testing.T) {
	t.Helper()
	step, want, _ := strings.Cut(r.steps[0], "=")
	step, want = strings.TrimSpace(step), strings.TrimSpace(want)
	got := r.run(t, step)
	r.steps, r.ended = r.steps[1:], strings.HasPrefix(got, "503")
	if got != want && !r.ended {
		r.wrong = append(r.wrong, fmt.Sprintf("%s = %s, want %s", step, got, want))
	}
}

// shown returns the amounts of all bookings.
func (r *moneyRun) shown(t *testing.T) (list []string) {
	t.Helper()
	for _, id := range r.bookings {
		b := read[moneyBooking](t, r.client, "/bookings/"+id)
		list = append(list, fmt.Sprintf("%s: %d paid, %d refunded, %d due", b.PaymentStatus, b.Paid.Amount, b.Refunded.Amount, b.Due.Amount))
	}
	return list
}

// TestMoneyWithoutConsumers checks that no decision about money depends on an event. Each scenario has the same answers, or a 503, if
// the consumers catch up after each step, if the next step follows at once, and if all consumers, or one of them, stop before any of
// the steps, or if payments reads no refund back from Stripe. After the consumers have caught up, the bookings of a scenario always have the same amounts.
func TestMoneyWithoutConsumers(t *testing.T) {
	runs := runScenarios(t, "caught up", func(int) { shared.caughtUp(t) })
	runs = append(runs, runScenarios(t, "at once", func(int) {})...)
	if len(runs) < 2*len(moneyScenarios) {
		t.Error("a 503 while all consumers are running")
	}
	const steps = 7 // of most scenarios, before which consumers stop
	stopped := func(name string, at int, stop func() (resume func())) {
		t.Helper()
		resume := func() {}
		defer func() { resume() }()
		runs = append(runs, runScenarios(t, fmt.Sprintf("%s before step %d", name, at+1), func(n int) {
			if n == at {
				shared.caughtUp(t)
				resume = stop()
			}
		})...)
	}
	for n := range steps {
		stopped("no consumer", n, func() (resume func()) {
			shared.signal(t, shared.broker(), syscall.SIGSTOP)
			return func() { shared.signal(t, shared.broker(), syscall.SIGCONT) }
		})
	}
	for _, service := range moneyServices {
		for range scaled(1, steps) {
			stopped("no consumer of "+service, rand.IntN(steps), func() (resume func()) { return shared.withoutConsumer(t, service) })
		}
	}
	stopped("no read of a refund", 0, func() (resume func()) { return shared.withoutRefundReads(t) })
	shared.caughtUp(t)
	first := map[string][]string{}
	for _, r := range runs {
		if first[r.name] == nil {
			first[r.name] = r.shown(t)
		}
		patient(t, fmt.Sprintf("the bookings of %q: %q", r.name, first[r.name]), func() bool { return slices.Equal(r.shown(t), first[r.name]) })
	}
}
