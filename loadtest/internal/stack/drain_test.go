package stack

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/kafkatest"
)

// TestWaitingCountsUnprocessedMessages commits the offsets of a group step by step. At first, the group has none.
func TestWaitingCountsUnprocessedMessages(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		ctx, prefix := t.Context(), kafkatest.Prefix(t)
		topic, other, group := prefix+"read", prefix+"other", prefix+"group"
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		e := &events{kafka: client, topics: []string{topic, other}, readers: map[string][]string{group: {topic}, prefix + "second": {other}}}
		defer e.close()
		admin := kadm.NewClient(client)
		if res, err := admin.CreateTopics(ctx, 2, 1, nil, topic, other); err != nil || res.Error() != nil {
			t.Fatal(err, res.Error())
		}
		for _, partition := range []int32{0, 0, 0, 1} {
			if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		check := func(want ...string) {
			t.Helper()
			got, err := e.waiting(ctx)
			for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				got, err = e.waiting(ctx) // Kafka needs a moment for its first group
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("waiting: %v, %v, want %v", got, err, want)
			}
		}
		commit := func(partition int32, next int64) {
			t.Helper()
			offsets := kadm.Offsets{}
			offsets.AddOffset(topic, partition, next, -1)
			if err := admin.CommitAllOffsets(ctx, group, offsets); err != nil {
				t.Fatal(err)
			}
		}
		check("4 for " + group)
		commit(0, 2)
		check("2 for " + group)
		commit(0, 3)
		commit(1, 1)
		check()
	})
}
