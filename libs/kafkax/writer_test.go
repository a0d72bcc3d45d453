package kafkax

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestWriterLosesNothing checks the settings that prevent loss and preserve the order: all replicas acknowledge, one request at a
// time, and messages of one key on one partition.
func TestWriterLosesNothing(t *testing.T) {
	t.Parallel()
	w := NewWriter(Cluster{Brokers: []string{"127.0.0.1:1"}, Prefix: "p."})
	defer w.Close()
	if acks := w.client.OptValue(kgo.RequiredAcks); acks != kgo.AllISRAcks() {
		t.Errorf("acks %v", acks)
	}
	if auto := w.client.OptValue(kgo.AllowAutoTopicCreation); auto != false {
		t.Errorf("topics are created automatically: %v", auto)
	}
	if inFlight := w.client.OptValue(kgo.MaxProduceRequestsInflightPerBroker); inFlight != 1 {
		t.Errorf("%v requests at once", inFlight)
	}
	partition := kgo.StickyKeyPartitioner(nil).ForTopic("things")
	first := partition.Partition(&kgo.Record{Key: []byte("cu_1")}, 6)
	for range 10 {
		if got := partition.Partition(&kgo.Record{Key: []byte("cu_1")}, 6); got != first {
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

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                  {nil, false},
		"the broker's response": {kerr.UnknownTopicOrPartition, true},
		"created again":         {fmt.Errorf("write: %w", kerr.UnknownTopicID), true},
		"another response":      {kerr.NotLeaderForPartition, false},
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
