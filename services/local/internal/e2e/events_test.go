package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/kafkax"
)

// TestEveryCommittedChangeHasItsEvent kills the service with the event relay at random while customers are created, and checks
// that every change has its event.
func TestEveryCommittedChangeHasItsEvent(t *testing.T) {
	checkEveryCommittedChangeHasItsEvent(t, shared)
}

func checkEveryCommittedChangeHasItsEvent(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	var writes ledger
	writers := goOn(t, 4, func() {
		w := newCustomer()
		writes.note(c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated).id(t), w)
	})
	for range rounds(3) {
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		p.kill(t, "customers")
		c.list(t, "/customers?limit=1") // waits until the service is back, so that it works between two kills
	}
	writers.stop()
	writes.check(t, p, c)
}

// TestNoEventWithoutAChange checks that a change without effect and a refused change have no event, and that every other change
// has one, in order.
func TestNoEventWithoutAChange(t *testing.T) { checkNoEventWithoutAChange(t, shared) }

func checkNoEventWithoutAChange(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	id := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"N","email":"n@example.com"}`).id(t)
	c.want(t, http.StatusOK, http.MethodPatch, "/customers/"+id, `{"first_name":"N"}`)
	c.want(t, http.StatusOK, http.MethodPatch, "/customers/"+id, `{}`)
	c.want(t, http.StatusUnprocessableEntity, http.MethodPatch, "/customers/"+id, `{"email":"nonsense"}`)
	for n := range 5 {
		c.want(t, http.StatusOK, http.MethodPatch, "/customers/"+id, fmt.Sprintf(`{"first_name":"N%d"}`, n))
	}
	await(t, "six events", func() bool { return len(p.events(t, "customers")[id]) >= 6 })
	for i, e := range p.events(t, "customers")[id] {
		if i >= 6 || e.GetResourceVersion() != int64(i+1) {
			t.Errorf("event %d is %s of version %d", i, e.GetType(), e.GetResourceVersion())
		}
	}
}

// TestWritesContinueWithoutKafka stops and then kills Kafka during writes. It checks that the writes succeed, and that their
// events arrive after Kafka is back.
func TestWritesContinueWithoutKafka(t *testing.T) { checkWritesContinueWithoutKafka(t, shared) }

func checkWritesContinueWithoutKafka(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	var writes ledger
	slowest := time.Duration(0)
	create := func(n int) {
		for range n {
			w, began := newCustomer(), time.Now()
			a := c.do(t, http.MethodPost, w.path, w.body, w.key)
			slowest = max(slowest, time.Since(began))
			if a.Status != http.StatusCreated {
				t.Fatalf("while Kafka is away: %d %s", a.Status, a.Body)
			}
			writes.note(a.id(t), w)
		}
	}
	create(1)
	p.signal(t, p.broker(), syscall.SIGSTOP)
	create(rounds(20))
	p.signal(t, p.broker(), syscall.SIGCONT)
	create(1)
	p.kill(t, p.broker())
	create(rounds(20))
	if slowest > 2*time.Second {
		t.Errorf("a write took %v while Kafka was away", slowest)
	}
	writes.check(t, p, c)
}

// projection selects the state of customers in bookings, and truth the state in customers: "id name version erased".
const (
	projection = `select format('%s|%s|%s|%s', id, name, version, erased) from customers where id = any($1)`
	truth      = `select format('%s|%s|%s|%s', id, first_name, version, false) from customers where id = any($1)`
)

// TestAKilledConsumerDoesEachEffectOnce kills the consumer repeatedly while customers change. It checks that afterwards its state
// is correct, and that each event took effect once.
func TestAKilledConsumerDoesEachEffectOnce(t *testing.T) {
	checkAKilledConsumerDoesEachEffectOnce(t, shared)
}

func checkAKilledConsumerDoesEachEffectOnce(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	var ids []string
	for range 6 {
		w := newCustomer()
		ids = append(ids, c.insist(t, http.MethodPost, w.path, w.body, w.key, http.StatusCreated).id(t))
	}
	changes := goOn(t, 3, func() {
		body := fmt.Sprintf(`{"first_name":"K%d"}`, rand.IntN(1000))
		c.insist(t, http.MethodPatch, "/customers/"+ids[rand.IntN(len(ids))], body, "", http.StatusOK)
	})
	for range rounds(3) {
		time.Sleep(time.Duration(300+rand.IntN(500)) * time.Millisecond)
		p.kill(t, "bookings")
	}
	time.Sleep(200 * time.Millisecond)
	changes.stop()
	customersDB, bookingsDB := p.database(t, "customers"), p.database(t, "bookings")
	uuids := make([]string, len(ids))
	for i, id := range ids {
		uuids[i] = uuidOf(t, id)
	}
	want := rows(t, customersDB, truth, uuids)
	slices.Sort(want)
	var got []string
	await(t, "bookings knows what customers says", func() bool {
		got = rows(t, bookingsDB, projection, uuids)
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	var all []string
	events := p.events(t, "customers")
	for _, id := range ids {
		for _, e := range events[id] {
			all = append(all, uuidOf(t, e.GetId()))
		}
	}
	if n := len(rows(t, bookingsDB, `select event_id::text from inbox where event_id = any($1)`, all)); n != len(all) {
		t.Errorf("%d of %d events are in the inbox", n, len(all))
	}
}

// TestPoisonIsDeadLetteredAndRedriven checks that a poison message does not delay other messages and moves to the dead-letter
// topic. After a redrive, messages that can be handled are handled, and the others return to the dead-letter topic.
func TestPoisonIsDeadLetteredAndRedriven(t *testing.T) {
	checkPoisonIsDeadLetteredAndRedriven(t, shared)
}

func checkPoisonIsDeadLetteredAndRedriven(t *testing.T, p *platform) {
	c := p.as(t, "OTHER_TEST_KEY")
	bookingsDB := p.database(t, "bookings")
	knows := func(id string) bool { return len(rows(t, bookingsDB, projection, []string{uuidOf(t, id)})) == 1 }
	left := p.letters(t) // from an earlier run
	poison := unique("poison")
	p.produce(t, "customers", poisonIn12(poison)...)
	var good string
	for range 12 {
		w := newCustomer()
		good = c.do(t, http.MethodPost, w.path, w.body, w.key).id(t)
	}
	dead := func() int {
		n := 0
		for _, m := range p.messages(t, "bookings.dlq") {
			if strings.HasPrefix(string(m.Value), poison) {
				n++
			}
		}
		return n
	}
	await(t, "a customer behind the poison is known", func() bool { return knows(good) })
	await(t, "twelve dead letters", func() bool { return dead() >= 12 })

	// A valid event that became a dead letter by mistake. bookings has no record of it.
	var lost *kgo.Record
	for _, m := range p.messages(t, "customers") {
		if string(m.Key) == good {
			lost = m
		}
	}
	execute(t, bookingsDB, `delete from customers where id = $1`, uuidOf(t, good))
	execute(t, bookingsDB, `delete from inbox where event_id = $1`, uuidOf(t, p.events(t, "customers")[good][0].GetId()))
	p.produce(t, "bookings.dlq", &kgo.Record{Key: lost.Key, Value: lost.Value, Headers: append(lost.Headers,
		kgo.RecordHeader{Key: kafkax.HeaderTopic, Value: []byte("customers")})})
	if said := p.redrive(t); said != fmt.Sprintln(left+13, "sent back") {
		t.Errorf("redrive of thirteen letters with %d left says %q", left, said)
	}
	await(t, "the good one is known again", func() bool { return knows(good) })
	await(t, "the others are put aside again", func() bool { return dead() >= 24 })
	if n := dead(); n != 24 {
		t.Errorf("%d dead letters, want 24", n)
	}
}

// poisonIn12 returns one undecodable message for each of twelve partitions.
func poisonIn12(text string) []*kgo.Record {
	var all []*kgo.Record
	for n := range int32(12) {
		all = append(all, &kgo.Record{Partition: n, Key: fmt.Appendf(nil, "%d", n), Value: fmt.Appendf(nil, "%s %d", text, n)})
	}
	return all
}

// letters counts the dead letters of bookings that have not been sent back.
func (p *platform) letters(t *testing.T) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.env["KAFKA_BROKERS"]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const topic = "holdfast.bookings.dlq"
	var sent int64
	await(t, "the offset of the redrive", func() bool {
		list, err := kadm.NewClient(client).FetchOffsetsForTopics(t.Context(), "holdfast.bookings.redrive", topic)
		if at, ok := list.Lookup(topic, 0); err == nil && ok {
			sent = max(at.At, 0)
		}
		return err == nil || errors.Is(err, kerr.GroupIDNotFound)
	})
	return len(p.messages(t, "bookings.dlq")) - int(sent)
}

// redrive runs bin/bookings redrive in the platform's folder, as an operator would, and returns its output.
func (p *platform) redrive(t *testing.T) string {
	t.Helper()
	out, err := p.command("bookings", "redrive").CombinedOutput()
	if err != nil {
		t.Errorf("redrive: %v, %s", err, out)
	}
	return string(out)
}
