package kafkax_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/memtest"
)

// largest is an event whose object and previous attributes are as large as the contract lets them be.
const largest = 631 << 10

// alone lets the two brokers' tests of one function run one after the other.
var alone sync.Mutex

// A consumer of many partitions that are full of the largest events fits into a small pod, and so does their way to
// the dead letters and back.
func TestLargestMessagesFitIntoThePod(t *testing.T) { //nolint:paralleltest // it measures the process
	const partitions, messages, limit = 12, 240, 64 << 20
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		alone.Lock()
		defer alone.Unlock()
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
			together := func(_ context.Context, batch []kafkax.Message) error {
				begun.add("")
				eventually(t, "all partitions have a batch in hand", func() bool { return len(begun.all()) >= partitions })
				time.Sleep(100 * time.Millisecond) // what comes behind is read ahead meanwhile
				for _, m := range batch {
					got.add(m.Key)
				}
				return nil
			}
			handle := func(ctx context.Context, m kafkax.Message) error { return together(ctx, []kafkax.Message{m}) }
			stop := s.consume(t, handle, func(c *kafkax.Consumer) { c.Together = together })
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

// A batch ends before it has more than its bytes; a message that has more by itself goes alone. None is lost and
// none is overtaken.
func TestABatchIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const messages, size, partitions = 100, 100, 4
		var msgs []kafkax.Message
		for n := range messages {
			length := size
			if n%10 == 0 {
				length = 10 * size
			}
			msgs = append(msgs, thing("a", fmt.Sprintf("%03d%s", n, strings.Repeat("x", length-3))))
		}
		s.produce(t, msgs...)
		var got, groups seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error { got.add(string(m.Value[:3])); return nil }, func(c *kafkax.Consumer) {
			c.BatchBytes = partitions * 3 * size
			c.Together = func(_ context.Context, batch []kafkax.Message) error {
				bytes := 0
				for _, m := range batch {
					bytes += len(m.Value)
					got.add(string(m.Value[:3]))
				}
				if bytes > 3*size {
					t.Errorf("%d bytes in a batch of %d", bytes, len(batch))
				}
				groups.add("")
				return nil
			}
		})
		eventually(t, "all have come", func() bool { return len(got.all()) >= messages })
		if all := got.all(); len(all) != messages || !slices.IsSorted(all) {
			t.Errorf("%d messages: %v", len(all), all)
		}
		if n := len(groups.all()); n == 0 {
			t.Error("no batch came together")
		}
	})
}

// What is as large as a broker takes can be written.
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

// The lag of a partition grows while its message is held, with no message before that has ended.
func TestLagMovesWhileAMessageIsHeld(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		reg := prometheus.NewRegistry()
		s.consume(t, func(context.Context, kafkax.Message) error { return errors.New("the database is away") },
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

// lag is the sum over all partitions.
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

// A Kafka that has lost its topics gets them again from the next write, and who reads goes on by himself.
func TestTopicsAreMadeAnew(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		w := kafkax.NewWriter(s.cluster, kafkax.Topic{Name: "things", Partitions: 3}, kafkax.Topic{Name: kafkax.DeadLetterTopic("readers")})
		t.Cleanup(func() { _ = w.Close() })
		var got seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error { got.add(string(m.Value)); return nil })
		produce := func(values ...string) {
			t.Helper()
			for _, v := range values {
				if err := w.Produce(t.Context(), thing("a", v)); err != nil {
					t.Fatal(err)
				}
			}
		}
		produce("1", "2", "3")
		eventually(t, "the first ones", func() bool { return got.count("3") == 1 })
		client := &kafka.Client{Addr: kafka.TCP(brokers...)}
		names := []string{s.cluster.Prefix + "things", s.cluster.Prefix + kafkax.DeadLetterTopic("readers")}
		res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: names})
		if err != nil || res.Errors[names[0]] != nil {
			t.Fatal(err, res)
		}
		produce("4")
		eventually(t, "the one after", func() bool { return got.count("4") > 0 })
		if err := w.Produce(t.Context(), kafkax.Message{Topic: kafkax.DeadLetterTopic("readers"), Key: "a"}); err != nil {
			t.Errorf("the dead letters' topic: %v", err)
		}
	})
}
