package kafkax

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// MaxPartitions is the largest number of partitions that AddPartitions accepts.
const MaxPartitions = 1024

// selectPartition returns the partition of a key: murmur2 of the key, like other Kafka clients, over the number of partitions in the
// record's Partition field, or over all if it is 0. If the client does not know that many yet, the write fails before the message is
// sent, and the next attempt finds them.
func selectPartition(topic string) func(r *kgo.Record, n int) int {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	return func(r *kgo.Record, n int) int {
		if r.Partition > 0 {
			n = int(r.Partition)
		}
		return byKey.Partition(r, n)
	}
}

// atLeast returns the topics with no fewer partitions than the keys of the messages are distributed over.
func atLeast(topics []Topic, msgs []Message) []Topic {
	out := make([]Topic, len(topics))
	for i, t := range topics {
		for _, m := range msgs {
			if m.Topic == t.Name {
				t.Partitions = max(t.Partitions, m.Partitions)
			}
		}
		out[i] = t
	}
	return out
}

// Partitions returns the number of partitions of a topic.
func Partitions(ctx context.Context, c Cluster, topic string) (int, error) {
	admin, release, err := c.admin()
	if err != nil {
		return 0, err
	}
	defer release()
	return partitions(ctx, admin, c.Prefix+topic)
}

func partitions(ctx context.Context, admin *kadm.Client, name string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	found, err := admin.ListTopics(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("kafka: %w", err)
	}
	if err := led(found); err != nil {
		return 0, err
	}
	return len(found[name].Partitions), nil
}

// AddPartitions increases the number of partitions of a topic to n and waits until all have leaders. It changes nothing if the topic
// has n or more. Writers that distribute a key over all partitions use the new ones when they notice them, each at its own time:
// order per key ends, unless all of them set Message.Partitions.
func AddPartitions(ctx context.Context, c Cluster, topic string, n int) error {
	if n > MaxPartitions {
		return fmt.Errorf("topic %s: at most %d partitions, not %d", topic, MaxPartitions, n)
	}
	admin, release, err := c.admin()
	if err != nil {
		return err
	}
	defer release()
	name := c.Prefix + topic
	has, err := partitions(ctx, admin, name)
	if err != nil || has >= n {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	res, err := admin.UpdatePartitions(ctx, n, name)
	if err == nil {
		err = res.Error()
	}
	if err != nil {
		return fmt.Errorf("add partitions to topic %s: %w", name, err)
	}
	for {
		if has, err = partitions(ctx, admin, name); err == nil && has >= n {
			return waitForLeaders(ctx, admin, []string{name})
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topic %s has %d of %d partitions: %w", name, has, n, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Backlog is what a consumer group has not handled of a topic.
type Backlog struct {
	Group    string
	Messages int64
}

// Backlogs returns the groups that have not handled all messages of a topic. Messages that retention has deleted do not count. A
// group that never consumed has all messages before it.
func Backlogs(ctx context.Context, c Cluster, topic string, groups []string) ([]Backlog, error) {
	admin, release, err := c.admin()
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	name := c.Prefix + topic
	starts, err := listed(admin.ListStartOffsets(ctx, name))
	if err != nil {
		return nil, err
	}
	ends, err := listed(admin.ListEndOffsets(ctx, name))
	if err != nil {
		return nil, err
	}
	var out []Backlog
	for _, group := range groups {
		done, err := admin.FetchOffsets(ctx, c.Prefix+group)
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("offsets of group %s: %w", group, err)
		}
		waiting := Backlog{Group: group, Messages: missing(starts, ends, done)}
		if waiting.Messages > 0 {
			out = append(out, waiting)
		}
	}
	return out, nil
}

func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return offsets, nil
}
