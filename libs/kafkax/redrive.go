package kafkax

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// redriveFetch bounds the wait for one dead letter that is known to be there.
const redriveFetch = 15 * time.Second

var errNoOrigin = errors.New("dead letter has no " + HeaderTopic + " header")

// Redrive sends up to max dead letters of the group, 0 for all that are there now, back to the topics they
// came from, oldest first, and returns how many. What fails again comes back to the dead-letter topic. It
// continues where the last call stopped; a call that was cut short may send some twice.
func Redrive(ctx context.Context, brokers []string, prefix, group string, max int) (n int, err error) {
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: commitTimeout}
	writer := NewWriter(brokers, prefix)
	defer writer.Close() //nolint:errcheck // each Produce has waited for its answer
	r := redrive{
		client: client, writer: writer, brokers: brokers, prefix: prefix,
		topic: prefix + DeadLetterTopic(group), group: prefix + group + ".redrive",
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{r.topic}})
	if err != nil {
		return 0, fmt.Errorf("redrive %s: %w", group, err)
	}
	for _, t := range meta.Topics {
		if t.Error != nil {
			return 0, fmt.Errorf("redrive %s: %w", group, t.Error)
		}
		for _, p := range t.Partitions {
			if max > 0 && n == max {
				return n, nil
			}
			sent, err := r.partition(ctx, p.ID, max-n)
			if n += sent; err != nil {
				return n, fmt.Errorf("redrive %s: %w", group, err)
			}
		}
	}
	return n, nil
}

type redrive struct {
	client               *kafka.Client
	writer               *Writer
	brokers              []string
	prefix, topic, group string
}

// partition sends up to limit messages, all when it is not above zero.
func (r redrive) partition(ctx context.Context, id, limit int) (n int, err error) {
	first, last, err := bounds(ctx, r.client, r.topic, id)
	if err != nil {
		return 0, err
	}
	next, err := r.committed(ctx, id)
	if err != nil {
		return 0, err
	}
	next = max(next, first)
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: r.brokers, Topic: r.topic, Partition: id, MinBytes: 1, MaxBytes: 4 << 20,
		MaxWait: 500 * time.Millisecond, ReadLagInterval: -1,
	})
	defer reader.Close() //nolint:errcheck // always nil
	if err := reader.SetOffset(next); err != nil {
		return 0, fmt.Errorf("set offset: %w", err)
	}
	for next < last && (limit <= 0 || n < limit) {
		if next, err = r.one(ctx, reader, id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (r redrive) one(ctx context.Context, reader *kafka.Reader, id int) (next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, redriveFetch)
	defer cancel()
	raw, err := reader.FetchMessage(ctx)
	if err != nil {
		return 0, fmt.Errorf("fetch: %w", err)
	}
	m := fromKafka(r.prefix, raw)
	m.Topic = m.Headers[HeaderTopic]
	if m.Topic == "" {
		return 0, fmt.Errorf("offset %d: %w", raw.Offset, errNoOrigin)
	}
	for _, h := range []string{HeaderTopic, HeaderPartition, HeaderOffset, HeaderError} {
		delete(m.Headers, h)
	}
	if err := r.writer.Produce(ctx, m); err != nil {
		return 0, err
	}
	next = raw.Offset + 1
	return next, r.commit(ctx, id, next)
}

func (r redrive) committed(ctx context.Context, id int) (int64, error) {
	res, err := r.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: r.group, Topics: map[string][]int{r.topic: {id}}})
	if err != nil {
		return 0, fmt.Errorf("fetch offset: %w", err)
	}
	list := res.Topics[r.topic]
	if len(list) == 0 {
		return -1, nil
	}
	if err := list[0].Error; err != nil {
		return 0, fmt.Errorf("fetch offset: %w", err)
	}
	return list[0].CommittedOffset, nil // -1 when there is none
}

func (r redrive) commit(ctx context.Context, id int, next int64) error {
	res, err := r.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: r.group, GenerationID: -1, // no member: this group is never joined
		Topics: map[string][]kafka.OffsetCommit{r.topic: {{Partition: id, Offset: next}}},
	})
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for _, p := range res.Topics[r.topic] {
		if p.Error != nil {
			return fmt.Errorf("commit: %w", p.Error)
		}
	}
	return nil
}

// bounds returns the first offset of a partition and the one after its last message.
func bounds(ctx context.Context, client *kafka.Client, topic string, id int) (first, last int64, err error) {
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(id), kafka.LastOffsetOf(id)},
	}})
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets: %w", err)
	}
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return 0, 0, fmt.Errorf("list offsets: %w", p.Error)
		}
		first, last = p.FirstOffset, p.LastOffset
	}
	return first, last, nil
}
