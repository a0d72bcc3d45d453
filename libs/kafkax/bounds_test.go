package kafkax_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/memtest"
)

// largest is the size of an event whose object and previous attributes are as large as the contract allows.
const largest = 631 << 10

// alone makes the tests of the two brokers in one function run in sequence.
var alone sync.Mutex

// A consumer of many partitions with the largest events fits into a small pod, and so do the transfer to the dead letters and the
// redrive. The test is not parallel, because it measures the memory of the whole process.
func TestLargestMessagesFitIntoThePod(t *testing.T) {
	const messages, limit = 240, 64 << 20
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		alone.Lock()
		defer alone.Unlock()
		partitions := 48
		if strings.HasSuffix(t.Name(), "/embedded") {
			partitions = 12 // it answers one partition after the other, so that 48 do not all have a message in hand in time
		}
		s := setup{cluster: kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}}
		topics := []kafkax.Topic{{Name: "things", Partitions: partitions}, {Name: kafkax.DeadLetterTopic("readers")}}
		if err := kafkax.EnsureTopics(t.Context(), s.cluster, topics); err != nil {
			t.Fatal(err)
		}
		s.writer = kafkax.NewWriter(s.cluster)
		t.Cleanup(func() { _ = s.writer.Close() })
		value := bytes.Repeat([]byte("x"), largest)
		letter := kafkax.Message{
			Topic: kafkax.DeadLetterTopic("readers"), Key: "a", Value: value, Headers: map[string]string{kafkax.HeaderTopic: "things"},
		}
		for n := range messages / 10 {
			batch := []kafkax.Message{letter}
			for k := range 10 {
				batch = append(batch, kafkax.Message{Topic: "things", Key: fmt.Sprint(n, "-", k), Value: value})
			}
			s.produce(t, batch...)
		}
		memtest.Under(t, limit, func() {
			var got, begun seen
			handle := func(_ context.Context, m kafkax.Message) error {
				begun.add("")
				eventually(t, "all partitions have a message in hand", func() bool { return len(begun.all()) >= partitions })
				time.Sleep(10 * time.Millisecond) // meanwhile the next messages are fetched in advance
				got.add(m.Key)
				return nil
			}
			stop := s.consume(t, handle)
			eventually(t, "all have come", func() bool { return len(got.all()) >= messages })
			stop()
		})
		memtest.Under(t, limit/4, func() {
			n, err := kafkax.Redrive(t.Context(), s.settings(), "readers", 0, 2<<20)
			if n != messages/10 || err != nil {
				t.Errorf("redrive sent %d: %v", n, err)
			}
		})
	})
}

// A batch does not exceed its bytes. A larger message is handled alone. No message is lost and none is overtaken.
func TestABatchIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const messages, size = 200, 100
		var msgs []kafkax.Message
		for n := range messages {
			length := size
			if n%10 == 0 {
				length = 10 * size
			}
			msgs = append(msgs, thing(fmt.Sprint("k", n%8), fmt.Sprintf("%03d%s", n, strings.Repeat("x", length-3))))
		}
		s.produce(t, msgs...)
		var got, groups seen
		add := func(m kafkax.Message) { got.add(m.Key + " " + string(m.Value[:3])) }
		s.consume(t, func(_ context.Context, m kafkax.Message) error { add(m); return nil }, func(c *kafkax.Consumer) {
			c.BatchBytes = 3 * size
			c.HandleBatch = func(_ context.Context, batch []kafkax.Message) error {
				bytes := 0
				for _, m := range batch {
					bytes += len(m.Value)
					add(m)
				}
				if bytes > 3*size {
					t.Errorf("%d bytes in a batch of %d", bytes, len(batch))
				}
				groups.add("")
				return nil
			}
		})
		eventually(t, "all have come", func() bool { return len(got.all()) >= messages })
		byKey := map[string][]string{}
		for _, v := range got.all() {
			byKey[v[:2]] = append(byKey[v[:2]], v)
		}
		for key, values := range byKey {
			if len(values) != messages/8 || !slices.IsSorted(values) {
				t.Errorf("%s: %d messages: %v", key, len(values), values)
			}
		}
		if n := len(groups.all()); n == 0 {
			t.Error("no batch was formed")
		}
	})
}

// The largest message that a broker accepts can be written.
func TestTheLargestMessageIsWritten(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		s.produce(t, thing("a", strings.Repeat("x", 1<<20-256)), thing("b", strings.Repeat("x", largest)), thing("b", strings.Repeat("x", largest)))
		var got seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error { got.add(m.Key); return nil })
		eventually(t, "all have come", func() bool { return got.count("a") == 1 && got.count("b") == 2 })
	})
}

// The lag of a partition grows while its message is blocked, even if no message was handled before.
func TestLagMovesWhileAMessageIsHeld(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		reg := prometheus.NewRegistry()
		s.consume(t, func(context.Context, kafkax.Message) error { return errors.New("the database is down") },
			func(c *kafkax.Consumer) { c.Metrics = reg })
		waits := func(want float64) func() bool {
			return func() bool { return lag(t, reg) == want }
		}
		s.produce(t, thing("a", "1"))
		eventually(t, "one waits", waits(1))
		s.produce(t, thing("a", "2"), thing("a", "3"))
		eventually(t, "three wait", waits(3))
	})
}

// lag returns the sum over all partitions.
func lag(t *testing.T, reg *prometheus.Registry) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "kafka_consumer_lag" {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Lost topics of a Kafka are created again: the next writer creates those of the service, and the readers create those that they
// read. Messages that are written afterwards are read. Nothing is restarted.
func TestLostTopicsAreCreatedAgain(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		c := kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}
		things, others := kafkax.Topic{Name: "things", Partitions: 3}, kafkax.Topic{Name: "others"}
		w := kafkax.NewWriter(c, things)
		t.Cleanup(func() { _ = w.Close() })
		var got seen
		consumer := &kafkax.Consumer{
			Cluster: c, Group: "readers", Topics: []string{"things", "others"}, Log: slog.New(slog.DiscardHandler),
			Handle: func(_ context.Context, m kafkax.Message) error { got.add(string(m.Value)); return nil },
		}
		supervise(t, kafkax.WithTopics(c, []kafkax.Topic{things, others}, consumer.Run))
		produce := func(value string) {
			t.Helper()
			if err := w.Produce(t.Context(), thing("a", value)); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range []string{"1", "2", "3"} {
			produce(v)
		}
		eventually(t, "the first ones", func() bool { return got.count("3") == 1 })
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		admin, names := kadm.NewClient(client), []string{c.Prefix + "things", c.Prefix + "others"}
		if res, err := admin.DeleteTopics(t.Context(), names...); err != nil || res.Error() != nil {
			t.Fatal(err, res.Error())
		}
		produce("4")
		eventually(t, "the topic without a writer exists again", func() bool {
			found, err := admin.ListTopics(t.Context(), names...)
			return err == nil && found.Error() == nil
		})
		produce("5")
		eventually(t, "what was written since", func() bool { return got.count("4") > 0 && got.count("5") > 0 })
	})
}

// supervise restarts work whenever it fails, as a service does, until the test ends.
func supervise(t *testing.T, work func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil && work(ctx) != nil {
			time.Sleep(50 * time.Millisecond) // the service's back-off
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}
