package kafkax

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createpartitions"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// MaxPartitions is the largest number of partitions that AddPartitions accepts.
const MaxPartitions = 1024

var numbers = func() (list [MaxPartitions]int) {
	for i := range list {
		list[i] = i
	}
	return list
}()

// partitionOf returns the partition of a message in a topic with n partitions: murmur2 of the key, like other Kafka clients, over
// Message.Partitions, or over all if it is 0. It returns an error if the topic does not have, or the client does not know, that many.
func partitionOf(m Message, n int) (int32, error) {
	if m.Partitions > n || n > MaxPartitions {
		return 0, fmt.Errorf("%w: %d partitions are known, not %d", kafka.UnknownTopicOrPartition, n, m.Partitions)
	}
	over := cmp.Or(m.Partitions, n)
	id := kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(m.Key)}, numbers[:over]...)
	return int32(id), nil
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
	client := c.client()
	defer client.close()
	found, err := client.partitions(ctx, c.Prefix+topic)
	if err != nil {
		return 0, err
	}
	return len(found.Topics[0].Partitions), nil
}

// partitions returns the metadata of a topic whose partitions all have leaders.
func (c *client) partitions(ctx context.Context, name string) (*metadata.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	return repeated(ctx, func() (*metadata.Response, error) {
		found, err := c.topics(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		if _, err := leaders(found); err != nil {
			return nil, err
		}
		return found, nil
	})
}

// AddPartitions increases the number of partitions of a topic to n and waits until all have leaders. It changes nothing if the topic
// has n or more. Writers that distribute a key over all partitions use the new ones when they notice them, each at its own time:
// order per key ends, unless all of them set Message.Partitions.
func AddPartitions(ctx context.Context, c Cluster, topic string, n int) error {
	if n > MaxPartitions {
		return fmt.Errorf("topic %s: at most %d partitions, not %d", topic, MaxPartitions, n)
	}
	client := c.client()
	defer client.close()
	name := c.Prefix + topic
	found, err := client.partitions(ctx, name)
	if err != nil || len(found.Topics[0].Partitions) >= n {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	res, err := send[*createpartitions.Response](ctx, client, topicTimeout, &direct{broker: found.ControllerID, Message: &createpartitions.Request{
		TimeoutMs: int32(topicTimeout.Milliseconds()), Topics: []createpartitions.RequestTopic{{Name: name, Count: int32(n)}},
	}})
	if err == nil {
		for _, r := range res.Results {
			err = refusal(r.ErrorCode, r.ErrorMessage)
		}
	}
	if err != nil {
		return fmt.Errorf("add partitions to topic %s: %w", name, err)
	}
	for {
		if found, err = client.partitions(ctx, name); err == nil && len(found.Topics[0].Partitions) >= n {
			return client.waitForLeaders(ctx, []string{name})
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topic %s does not have %d partitions: %w", name, n, ctx.Err())
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
	client := c.client()
	defer client.close()
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	b, err := client.bounds(ctx, c.Prefix+topic)
	if err != nil {
		return nil, err
	}
	var out []Backlog
	for _, group := range groups {
		committed, err := client.committed(ctx, c.Prefix+group, b.ends)
		if err != nil {
			return nil, err
		}
		waiting := Backlog{Group: group, Messages: b.missing(committed)}
		if waiting.Messages > 0 {
			out = append(out, waiting)
		}
	}
	return out, nil
}
