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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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

// Writer is a Producer.
type Writer struct {
	cluster Cluster
	topics  []Topic
	client  *kgo.Client
	err     error // of the client's options
}

const (
	produceTimeout  = 10 * time.Second // of one request
	deliveryTimeout = 20 * time.Second // of one call of Produce; shorter than the time-out of the relay's open transaction
)

// NewWriter creates a writer to topics with the cluster's prefix. It does not connect. The given topics are created if the brokers
// do not know one, for example after they lost their disks.
func NewWriter(c Cluster, topics ...Topic) *Writer {
	client, err := kgo.NewClient(c.options(
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// One request at a time preserves the order per key. Without a producer id, a call can be abandoned while a broker does not
		// respond. The messages can then arrive twice.
		kgo.DisableIdempotentWrite(),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(selectPartition)),
		// Uncompressed, so that the size of what a consumer reads is bounded by what the brokers send.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(maxMessageBytes),
		kgo.ProduceRequestTimeout(produceTimeout),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.UnknownTopicRetries(1),
	)...)
	return &Writer{cluster: c, topics: topics, client: client, err: err}
}

// Produce implements Producer. After an error, some messages may have been stored. Produce all of them again.
func (w *Writer) Produce(ctx context.Context, msgs ...Message) error {
	if w.err != nil {
		return fmt.Errorf("write to kafka: %w", w.err)
	}
	err := w.produce(ctx, msgs)
	if unknownTopic(err) && len(w.topics) > 0 {
		if err = EnsureTopics(ctx, w.cluster, atLeast(w.topics, msgs)); err != nil {
			return err
		}
		for _, t := range w.topics {
			w.client.PurgeTopicsFromProducing(w.cluster.Prefix + t.Name) // the client remembers the ids of the lost topics
		}
		err = w.produce(ctx, msgs)
	}
	if err != nil {
		w.client.ForceMetadataRefresh() // a partition may have been added that the client does not know
		return fmt.Errorf("write to kafka: %w", err)
	}
	return nil
}

func (w *Writer) produce(ctx context.Context, msgs []Message) error {
	records := make([]*kgo.Record, len(msgs))
	for i, m := range msgs {
		records[i] = &kgo.Record{
			Topic: w.cluster.Prefix + m.Topic, Key: []byte(m.Key), Value: m.Value, Headers: toHeaders(m.Headers),
			Partition: int32(m.Partitions),
		}
	}
	return w.client.ProduceSync(ctx, records...).FirstErr()
}

// unknownTopic reports whether a broker does not know a topic or partition that was written to.
func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// Close closes the connections. No call of Produce may be in progress.
func (w *Writer) Close() error {
	if w.client != nil {
		w.client.Close()
	}
	return nil
}

func toHeaders(h map[string]string) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(h))
	for k, v := range h {
		out = append(out, kgo.RecordHeader{Key: k, Value: []byte(v)})
	}
	return out
}

func fromKafka(prefix string, r *kgo.Record) Message {
	h := make(map[string]string, len(r.Headers))
	for _, one := range r.Headers {
		h[one.Key] = string(one.Value)
	}
	return Message{Topic: r.Topic[len(prefix):], Key: string(r.Key), Value: r.Value, Headers: h}
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
	admin, release, err := c.admin()
	if err != nil {
		return err
	}
	defer release()
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = c.Prefix + t.Name
	}
	found, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err) // contains the reason why no broker is reached; the errors of later requests do not
	}
	if led(found) == nil {
		return nil
	}
	for i, t := range topics {
		if errors.Is(found[names[i]].Err, kerr.UnknownTopicOrPartition) {
			if err := createTopic(ctx, admin, names[i], t); err != nil {
				return err
			}
		}
	}
	return waitForLeaders(ctx, admin, names)
}

func createTopic(ctx context.Context, admin *kadm.Client, name string, t Topic) error {
	retention := cmp.Or(t.Retention, defaultRetention)
	partitions := int32(max(t.Partitions, 1))
	_, err := admin.CreateTopic(ctx, partitions, -1, map[string]*string{ // -1: the cluster's default replication
		"retention.ms":   kadm.StringPtr(strconv.FormatInt(retention.Milliseconds(), 10)),
		"cleanup.policy": kadm.StringPtr("delete"),
	}, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// waitForLeaders waits until each partition has a leader that responds: a leader learns about its partition slightly later than
// the other brokers.
func waitForLeaders(ctx context.Context, admin *kadm.Client, names []string) error {
	for {
		found, err := admin.ListTopics(ctx, names...)
		if err == nil {
			err = led(found)
		}
		if err == nil {
			var ends kadm.ListedOffsets
			if ends, err = admin.ListEndOffsets(ctx, names...); err == nil {
				err = ends.Error()
			}
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

// led returns an error unless each topic exists and each of its partitions has a leader.
func led(topics kadm.TopicDetails) error {
	for _, t := range topics.Sorted() {
		if t.Err != nil {
			return fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		}
		for _, p := range t.Partitions.Sorted() {
			if p.Err != nil {
				return fmt.Errorf("topic %s partition %d: %w", t.Topic, p.Partition, p.Err)
			}
		}
	}
	return nil
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
