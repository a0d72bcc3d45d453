// Package kafkax writes to and consumes from Kafka without loss: writes wait for all replicas, offsets are committed after the
// effect, and messages that cannot be handled go to a dead-letter topic. Messages can arrive twice. Consumers recognize duplicates
// by event id. Names of topics and groups in this package have no prefix.
package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// maxMessageBytes is the largest message with its key. It equals the brokers' default.
const maxMessageBytes = 1 << 20

// Message is one record. Messages with the same key stay in order.
type Message struct {
	Topic, Key string
	Value      []byte
	Headers    map[string]string
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
	cluster   Cluster
	topics    []Topic
	writer    *kafka.Writer
	transport *kafka.Transport
}

// NewWriter creates a writer to topics with the cluster's prefix. It does not connect. Topics must exist before the first write,
// because metadata is cached for 6 s. The given topics are created if the brokers do not know one, for example after they lost
// their disks.
func NewWriter(c Cluster, topics ...Topic) *Writer {
	transport := c.transport()
	return &Writer{cluster: c, topics: topics, transport: transport, writer: &kafka.Writer{
		Addr:         kafka.TCP(c.Brokers...),
		Transport:    transport,
		Balancer:     kafka.Murmur2Balancer{Consistent: true}, // like other Kafka clients; preserves the order per key
		RequiredAcks: kafka.RequireAll,                        // the library's default is no acknowledgment
		BatchTimeout: 5 * time.Millisecond,                    // the library's default is one second
		BatchSize:    500,
		BatchBytes:   maxMessageBytes,
		MaxAttempts:  3,
		WriteTimeout: 10 * time.Second,
		ReadTimeout:  10 * time.Second,
	}}
}

// Produce implements Producer. After an error, some messages may have been stored. Produce all of them again.
func (w *Writer) Produce(ctx context.Context, msgs ...Message) error {
	out := make([]kafka.Message, len(msgs))
	for i, m := range msgs {
		out[i] = kafka.Message{Topic: w.cluster.Prefix + m.Topic, Key: []byte(m.Key), Value: m.Value, Headers: toHeaders(m.Headers)}
	}
	err := w.writer.WriteMessages(ctx, out...)
	if unknownTopic(err) && len(w.topics) > 0 {
		if err = EnsureTopics(ctx, w.cluster, w.topics); err != nil {
			return err
		}
		w.transport.CloseIdleConnections() // also drops the cached metadata of the topics
		err = w.writer.WriteMessages(ctx, out...)
	}
	if err != nil {
		return fmt.Errorf("write to kafka: %w", err)
	}
	return nil
}

// unknownTopic reports whether a broker, or the writer's cached metadata, does not know a topic or partition that was
// written to.
func unknownTopic(err error) bool {
	var each kafka.WriteErrors
	if errors.As(err, &each) {
		return slices.ContainsFunc(each, unknownTopic)
	}
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// Close sends the buffered messages and closes the connections.
func (w *Writer) Close() error {
	err := w.writer.Close()
	w.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close kafka writer: %w", err)
	}
	return nil
}

func toHeaders(h map[string]string) []kafka.Header {
	out := make([]kafka.Header, 0, len(h))
	for k, v := range h {
		out = append(out, kafka.Header{Key: k, Value: []byte(v)})
	}
	return out
}

func fromKafka(prefix string, m kafka.Message) Message {
	h := make(map[string]string, len(m.Headers))
	for _, one := range m.Headers {
		h[one.Key] = string(one.Value)
	}
	return Message{Topic: m.Topic[len(prefix):], Key: string(m.Key), Value: m.Value, Headers: h}
}

// Topic describes a topic to create. The number of partitions never changes afterwards, because the order per key
// depends on it.
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
			slog.WarnContext(ctx, "cannot create the topics, trying again", slog.Any("error", err))
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
	client, release := c.newClient(topicTimeout)
	defer release()
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = c.Prefix + t.Name
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return fmt.Errorf("kafka: %w", err) // contains the reason why no broker is reached; the errors of later requests do not
	}
	if led(meta.Topics) == nil {
		return nil
	}
	if err := createTopics(ctx, client, names, topics); err != nil {
		return err
	}
	return waitForLeaders(ctx, client, names)
}

func createTopics(ctx context.Context, client *kafka.Client, names []string, topics []Topic) error {
	req := &kafka.CreateTopicsRequest{}
	for i, t := range topics {
		if t.Retention == 0 {
			t.Retention = defaultRetention
		}
		req.Topics = append(req.Topics, kafka.TopicConfig{
			Topic: names[i], NumPartitions: max(t.Partitions, 1), ReplicationFactor: -1, // the cluster's default
			ConfigEntries: []kafka.ConfigEntry{
				{ConfigName: "retention.ms", ConfigValue: fmt.Sprint(t.Retention.Milliseconds())},
				{ConfigName: "cleanup.policy", ConfigValue: "delete"},
			},
		})
	}
	res, err := client.CreateTopics(ctx, req)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for name, err := range res.Errors {
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}

func waitForLeaders(ctx context.Context, client *kafka.Client, names []string) error {
	for {
		meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
		if err == nil {
			err = led(meta.Topics)
		}
		if err == nil {
			err = checkLeaders(ctx, client, meta.Topics)
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

func led(topics []kafka.Topic) error {
	for _, t := range topics {
		if t.Error != nil {
			return fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		for _, p := range t.Partitions {
			if p.Error != nil {
				return fmt.Errorf("topic %s partition %d: %w", t.Name, p.ID, p.Error)
			}
		}
	}
	return nil
}

// checkLeaders queries the leader of each partition, because a leader learns about its partition slightly later than the other
// brokers.
func checkLeaders(ctx context.Context, client *kafka.Client, topics []kafka.Topic) error {
	requests := map[string][]kafka.OffsetRequest{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			requests[t.Name] = append(requests[t.Name], kafka.LastOffsetOf(p.ID))
		}
	}
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: requests})
	if err != nil {
		return fmt.Errorf("list offsets: %w", err)
	}
	for name, partitions := range res.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return fmt.Errorf("topic %s partition %d: %w", name, p.Partition, p.Error)
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
