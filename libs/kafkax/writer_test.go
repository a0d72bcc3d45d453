package kafkax

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"holdfast.dev/libs/kafkatest"
)

// TestWriterLosesNothing checks the settings that replace the library's defaults: no acknowledgment, a delay of one second, and
// messages of one key on all partitions.
func TestWriterLosesNothing(t *testing.T) {
	t.Parallel()
	w := NewWriter(Cluster{Brokers: []string{"127.0.0.1:1"}, Prefix: "p."}).writer
	if w.RequiredAcks != kafka.RequireAll {
		t.Errorf("acks %v", w.RequiredAcks)
	}
	if w.BatchTimeout > 10*time.Millisecond || w.BatchSize < 100 || w.Async || w.AllowAutoTopicCreation {
		t.Errorf("%+v", w)
	}
	partitions := []int{0, 1, 2, 3, 4, 5}
	first := w.Balancer.Balance(kafka.Message{Key: []byte("cu_1")}, partitions...)
	for range 10 {
		if got := w.Balancer.Balance(kafka.Message{Key: []byte("cu_1")}, partitions...); got != first {
			t.Fatalf("one key on partitions %d and %d", first, got)
		}
	}
}

func TestWriterFailsWithoutABroker(t *testing.T) {
	t.Parallel()
	w := NewWriter(Cluster{Brokers: []string{"127.0.0.1:1"}, Prefix: "p."})
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := w.Produce(ctx, Message{Topic: "things", Key: "a"}); err == nil {
		t.Error("produced without a broker")
	}
}

// The offsets distinguish a stalled reader from a partition without new messages.
func TestCheckFindsAStalledReader(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		cluster := Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}
		if err := EnsureTopics(t.Context(), cluster, []Topic{{Name: "things"}}); err != nil {
			t.Fatal(err)
		}
		w := NewWriter(cluster)
		defer w.Close()
		if err := w.Produce(t.Context(), Message{Topic: "things", Key: "a"}, Message{Topic: "things", Key: "a"}); err != nil {
			t.Fatal(err)
		}
		c := &Consumer{Cluster: cluster, Group: "readers", client: &kafka.Client{Addr: kafka.TCP(brokers...)}}
		if err := c.register(); err != nil {
			t.Fatal(err)
		}
		for next, want := range map[int64]error{kafka.FirstOffset: errStalled, 0: errStalled, 1: errStalled, 2: nil, 3: errRecreated} {
			p := &partition{Consumer: c, topic: cluster.Prefix + "things"}
			p.next.Store(next)
			if err := p.check(t.Context()); !errors.Is(err, want) {
				t.Errorf("at %d: %v, want %v", next, err, want)
			}
		}
	})
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                      {nil, false},
		"the broker's response":     {kafka.UnknownTopicOrPartition, true},
		"one of several":            {fmt.Errorf("write: %w", kafka.WriteErrors{nil, kafka.UnknownTopicOrPartition}), true},
		"topic not in metadata":     {kafka.WriteErrors{fmt.Errorf("produce: %w", protocol.NewErrNoTopic("t"))}, true},
		"partition not in metadata": {kafka.WriteErrors{fmt.Errorf("produce: %w", protocol.NewErrNoPartition("t", 1))}, true},
		"another response":          {kafka.WriteErrors{kafka.NotLeaderForPartition}, false},
		"no response":               {errors.New("connection refused"), false},
	} {
		if got := unknownTopic(tc.err); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMetricsAreRegisteredOnceForAllRuns(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	for range 2 {
		if err := (&Consumer{Group: "readers", Metrics: reg}).register(); err != nil {
			t.Fatal(err)
		}
	}
}
