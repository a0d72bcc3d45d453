// Package kafkax writes to and consumes from Kafka without loss: writes wait for all replicas, offsets are committed after the
// effect, and messages that cannot be handled go to a dead-letter topic. Messages can arrive twice. Consumers recognize duplicates
// by event id. Names of topics and groups in this package have no prefix.
package kafkax

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// maxMessageBytes is the largest message with its key. It equals the brokers' default.
const maxMessageBytes = 1 << 20

// Message is one record. Messages with the same key stay in order.
type Message struct {
	Topic, Key string
	Value      []byte
	Headers    map[string]string
	// Partitions is the number of partitions that the key is distributed over: those from 0 on. 0 means all that the topic has. A
	// topic can have more, because they are added before keys move to them.
	Partitions int
}

// Producer sends messages. It returns when all of them are stored, or an error when any of them may not be.
type Producer interface {
	Produce(ctx context.Context, msgs ...Message) error
}

// ErrPoison marks a message that no retry can handle, because it cannot be decoded or is rejected permanently.
var ErrPoison = errors.New("poison message")

// ErrSeparate reports that the messages of a batch must be handled one by one. HandleBatch returns it before it has any effect. It
// is not a failure.
var ErrSeparate = errors.New("handle the messages one by one")

// Poison wraps err so that the message goes to the dead-letter topic.
func Poison(err error) error { return fmt.Errorf("%w: %w", ErrPoison, err) }

func fromKafka(prefix string, r *record) Message {
	h := make(map[string]string, len(r.headers))
	for _, one := range r.headers {
		h[one.Key] = string(one.Value)
	}
	return Message{Topic: r.topic[len(prefix):], Key: string(r.key), Value: r.value, Headers: h}
}

// Topic describes a topic to create. Change the number of partitions of a topic with messages only as outbox.Increase does, because
// the order per key depends on it.
type Topic struct {
	Name       string
	Partitions int           // 1 when zero
	Retention  time.Duration // 7 days when zero
}

const (
	defaultRetention = 7 * 24 * time.Hour
	topicTimeout     = 15 * time.Second
	reachLimit       = 30 * time.Second
)

// DeadLetterTopic returns the topic of the messages that the group could not handle.
func DeadLetterTopic(group string) string { return group + ".dlq" }

// MakeTopics is EnsureTopics for a command. It waits for unreachable brokers, because a pod may run seconds before its
// network is ready.
func MakeTopics(ctx context.Context, s Settings, topics []Topic) error {
	c, err := s.Cluster()
	if err != nil {
		return err
	}
	return retryUntilReached(ctx, time.Second, func() (again bool, err error) {
		if err = EnsureTopics(ctx, c, topics); err != nil {
			slog.WarnContext(ctx, "topics not created; trying again", slog.Any("error", err))
		}
		return err != nil, err
	})
}

// retryUntilReached calls try until it requests no retry, ctx ends or reachLimit has passed. It returns the last error.
func retryUntilReached(ctx context.Context, pause time.Duration, try func() (again bool, err error)) error {
	for limit := time.Now().Add(reachLimit); ; {
		again, err := try()
		if !again || time.Now().After(limit) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// EnsureTopics creates the missing topics and waits until all have leaders. If none is missing, it does not need the permission to
// create topics.
func EnsureTopics(ctx context.Context, c Cluster, topics []Topic) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	client := c.client()
	defer client.close()
	names := make([]string, len(topics))
	byName := map[string]Topic{}
	for i, t := range topics {
		names[i] = c.Prefix + t.Name
		byName[names[i]] = t
	}
	found, err := client.topics(ctx, names...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err) // contains the reason why no broker is reached; the errors of later requests do not
	}
	if _, err := leaders(found); err == nil {
		return nil
	}
	for _, t := range found.Topics {
		if kafka.Error(t.ErrorCode) == kafka.UnknownTopicOrPartition {
			if err := client.createTopic(ctx, found, t.Name, byName[t.Name]); err != nil {
				return err
			}
		}
	}
	return client.waitForLeaders(ctx, names)
}

func (c *client) createTopic(ctx context.Context, found *metadata.Response, name string, t Topic) error {
	retention := cmp.Or(t.Retention, defaultRetention)
	res, err := send[*createtopics.Response](ctx, c, topicTimeout, &direct{broker: found.ControllerID, Message: &createtopics.Request{
		TimeoutMs: int32(topicTimeout.Milliseconds()),
		Topics: []createtopics.RequestTopic{{
			Name: name, NumPartitions: int32(max(t.Partitions, 1)), ReplicationFactor: -1, // the cluster's default
			Configs: []createtopics.RequestConfig{
				{Name: "retention.ms", Value: strconv.FormatInt(retention.Milliseconds(), 10)},
				{Name: "cleanup.policy", Value: "delete"},
			},
		}},
	}})
	if err == nil {
		for _, r := range res.Topics {
			err = refusal(r.ErrorCode, r.ErrorMessage)
		}
	}
	if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// waitForLeaders waits until each partition has a leader that responds: a leader learns about its partition slightly later than
// the other brokers.
func (c *client) waitForLeaders(ctx context.Context, names []string) error {
	for {
		found, err := c.topics(ctx, names...)
		var led map[place]int32
		if err == nil {
			led, err = leaders(found)
		}
		if err == nil {
			_, err = c.offsets(ctx, kafka.LastOffset, led)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topics are not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// WithTopics returns a worker that first creates the topics. If no broker is reached, the worker fails and is restarted with
// back-off, and the process continues to serve.
func WithTopics(c Cluster, topics []Topic, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := EnsureTopics(ctx, c, topics); err != nil {
			return err
		}
		return work(ctx)
	}
}
