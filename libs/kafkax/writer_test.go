package kafkax

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
)

// TestWriterLosesNothing checks what prevents loss and preserves the order: all replicas acknowledge, and a partition has one request
// at a time, with its messages in order.
func TestWriterLosesNothing(t *testing.T) {
	t.Parallel()
	w := NewWriter(Cluster{Prefix: "p."})
	w.leaders["p.things"] = []int32{1, 2, 1}
	var msgs []Message
	for n := range 100 {
		msgs = append(msgs, Message{Topic: "things", Key: fmt.Sprint(n % 10), Value: []byte(fmt.Sprintf("%03d", n))})
	}
	left, err := w.distribute(msgs)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for at, batches := range left {
		if len(batches) != 1 {
			t.Errorf("partition %d: %d batches", at.id, len(batches))
		}
		req := request(left, []place{at})
		if req.Acks != -1 || len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 {
			t.Errorf("acks %d, %+v", req.Acks, req.Topics)
		}
		for i, m := range batches[0] {
			if i > 0 && string(batches[0][i-1].Value) >= string(m.Value) {
				t.Errorf("%s after %s", m.Value, batches[0][i-1].Value)
			}
			sent++
		}
	}
	if sent != len(msgs) {
		t.Errorf("%d messages", sent)
	}
}

// A call waits for the one before it.
func TestWriterWritesOneCallAfterTheOther(t *testing.T) {
	t.Parallel()
	w := NewWriter(Cluster{Brokers: []string{"127.0.0.1:1"}})
	<-w.slot
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.Produce(ctx, Message{Topic: "things"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Keys stay on the partitions that they had when the messages of a topic began: those of murmur2, as other clients select them.
func TestPartitionsOfKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{"": 9, "a": 28, "bk_01jz8v5r1hf2xt5y0d2v9q3k7m": 7, "cu_1": 18, "héllo": 42, "0": 20} {
		for _, m := range []Message{{Key: key}, {Key: key, Partitions: 48}} {
			n := 48
			if m.Partitions > 0 {
				n = 96 // partitions that are added do not move keys
			}
			if got, err := partitionOf(m, n); got != want || err != nil {
				t.Errorf("%q: %d, %v, want %d", key, got, err, want)
			}
		}
	}
	if _, err := partitionOf(Message{Partitions: 12}, 6); !unknownTopic(err) {
		t.Errorf("a partition that the client does not know: %v", err)
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

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                  {nil, false},
		"the broker's response": {kafka.UnknownTopicOrPartition, true},
		"with its topic":        {fmt.Errorf("topic things: %w", kafka.UnknownTopicOrPartition), true},
		"another response":      {kafka.NotLeaderForPartition, false},
		"no response":           {errors.New("connection refused"), false},
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
