// Package kafkax writes to and consumes from Kafka such that nothing is lost: writes wait for all replicas,
// offsets are committed after the effect, and what cannot be handled goes to a dead-letter topic. Duplicates
// are certain; consumers recognise them by event id. Topic and group names here are without the prefix.
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

// maxMessageBytes bounds a message with its key, as brokers do unless they are told otherwise.
const maxMessageBytes = 1 << 20

// Message is one record. Messages of one key keep their order.
type Message struct {
	Topic, Key string
	Value      []byte
	Headers    map[string]string
}

// Producer is what sends messages; it returns when all of them are stored, or with an error when any may not be.
type Producer interface {
	Produce(ctx context.Context, msgs ...Message) error
}

// ErrPoison marks a message that no repetition will make good: undecodable, or refused for good.
var ErrPoison = errors.New("poison message")

// Poison wraps err so that the message goes to the dead-letter topic.
func Poison(err error) error { return fmt.Errorf("%w: %w", ErrPoison, err) }

// Writer is a Producer.
type Writer struct {
	cluster   Cluster
	topics    []Topic
	writer    *kafka.Writer
	transport *kafka.Transport
}

// NewWriter makes a writer to topics of the cluster's prefix. It does not connect. Topics must exist before the first
// write, because metadata is cached for 6 s; those named here are made when the brokers do not know one, as after
// the loss of their disks.
func NewWriter(c Cluster, topics ...Topic) *Writer {
	transport := c.transport()
	return &Writer{cluster: c, topics: topics, transport: transport, writer: &kafka.Writer{
		Addr:         kafka.TCP(c.Brokers...),
		Transport:    transport,
		Balancer:     kafka.Murmur2Balancer{Consistent: true}, // as other Kafka clients do: order per key
		RequiredAcks: kafka.RequireAll,                        // the library's default is none
		BatchTimeout: 5 * time.Millisecond,                    // the library's default waits a second
		BatchSize:    500,
		BatchBytes:   maxMessageBytes,
		MaxAttempts:  3,
		WriteTimeout: 10 * time.Second,
		ReadTimeout:  10 * time.Second,
	}}
}

// Produce implements Producer. On an error some messages may have been stored: produce all again.
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
		w.transport.CloseIdleConnections() // and with them what it knows of the topics
		err = w.writer.WriteMessages(ctx, out...)
	}
	if err != nil {
		return fmt.Errorf("write to kafka: %w", err)
	}
	return nil
}

// unknownTopic reports whether a broker does not know a topic or partition that was written to, by its own answer or
// by what the writer has last heard of it.
func unknownTopic(err error) bool {
	var each kafka.WriteErrors
	if errors.As(err, &each) {
		return slices.ContainsFunc(each, unknownTopic)
	}
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// Close flushes and closes the connections.
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

// Topic describes a topic to create. Partitions never change afterwards: order per key depends on them.
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

// DeadLetterTopic is the topic that holds what the group could not handle.
func DeadLetterTopic(group string) string { return group + ".dlq" }

// MakeTopics is EnsureTopics for a command. It waits for a broker that is away: a pod may run seconds before its
// network lets it through.
func MakeTopics(ctx context.Context, s Settings, topics []Topic) error {
	c, err := s.Cluster()
	if err != nil {
		return err
	}
	return patiently(ctx, time.Second, func() (again bool, err error) {
		if err = EnsureTopics(ctx, c, topics); err != nil {
			slog.WarnContext(ctx, "no topics yet", slog.Any("error", err))
		}
		return err != nil, err
	})
}

// patiently calls try until it asks for no other try, ctx ends or reachLimit is over, and returns the last error.
func patiently(ctx context.Context, pause time.Duration, try func() (again bool, err error)) error {
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

// EnsureTopics creates the topics that do not exist and waits until all have leaders. Where all do it creates none,
// and needs no right to.
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
		return fmt.Errorf("kafka: %w", err) // it says why no broker is reached, which requests behind it do not
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
			err = leading(ctx, client, meta.Topics)
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

// leading asks the leaders: each learns of its partitions a moment after all brokers can name it.
func leading(ctx context.Context, client *kafka.Client, topics []kafka.Topic) error {
	ask := map[string][]kafka.OffsetRequest{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			ask[t.Name] = append(ask[t.Name], kafka.LastOffsetOf(p.ID))
		}
	}
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
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

// WithTopics makes a worker that first sees to its topics. A broker that is away fails the worker, which is
// started again with back-off; the process goes on serving meanwhile.
func WithTopics(c Cluster, topics []Topic, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := EnsureTopics(ctx, c, topics); err != nil {
			return err
		}
		return work(ctx)
	}
}
