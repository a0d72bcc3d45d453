package kafkax

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	redriveFetch = 500 * time.Millisecond // for one request
	redrivePause = 200 * time.Millisecond // between two searches for the coordinator
)

var errNoOrigin = errors.New("dead letter has no " + HeaderTopic + " header and is skipped")

// Redrive sends up to max dead letters of the group, oldest first, back to the topics that they came from, and returns how many it
// sent. If max is 0, it sends all letters that exist at the start. A message that fails again returns to the dead-letter topic. A
// letter without an origin is skipped and named in the error. At most about batchBytes of letters are in memory at a time. Redrive
// continues where the last call stopped. An interrupted call can send some letters twice.
func Redrive(ctx context.Context, s Settings, group string, max, batchBytes int) (n int, err error) {
	c, err := s.Cluster()
	if err != nil {
		return 0, err
	}
	client, release := c.newClient(commitTimeout)
	defer release()
	writer := NewWriter(c)
	defer writer.Close()
	r := redrive{
		client: client, writer: writer, prefix: c.Prefix, batchBytes: batchBytes,
		topic: c.Prefix + DeadLetterTopic(group), group: c.Prefix + group + ".redrive",
	}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{r.topic}})
	if err != nil {
		return 0, fmt.Errorf("redrive %s: %w", group, err)
	}
	var passed []error
	for _, t := range meta.Topics {
		if t.Error != nil {
			return 0, fmt.Errorf("redrive %s: %w", group, t.Error)
		}
		for _, p := range t.Partitions {
			if max > 0 && n == max {
				break
			}
			sent, err := r.partition(ctx, p.ID, max-n)
			n += sent
			if err != nil && !errors.Is(err, errNoOrigin) {
				return n, fmt.Errorf("redrive %s: %w", group, err)
			}
			passed = append(passed, err)
		}
	}
	return n, errors.Join(passed...)
}

type redrive struct {
	client               *kafka.Client
	writer               *Writer
	prefix, topic, group string
	batchBytes           int
}

// partition sends up to limit letters, or all when limit is not positive. errNoOrigin names skipped letters and does not stop the
// redrive.
func (r redrive) partition(ctx context.Context, id, limit int) (n int, err error) {
	first, last, err := bounds(ctx, r.client, r.topic, id)
	if err != nil {
		return 0, err
	}
	next, err := r.committed(ctx, id)
	if err != nil {
		return 0, err
	}
	var passed []error
	for next = max(next, first); next < last; {
		letters, err := r.fetch(ctx, id, next)
		if err != nil {
			return n, err
		}
		for _, m := range letters {
			if limit > 0 && n == limit {
				return n, errors.Join(passed...)
			}
			switch err := r.send(ctx, m); {
			case err == nil:
				n++
			case errors.Is(err, errNoOrigin):
				passed = append(passed, err)
			default:
				return n, err
			}
			next = m.Offset + 1
			if err := r.commit(ctx, id, next); err != nil {
				return n, err
			}
		}
	}
	return n, errors.Join(passed...)
}

// fetch reads some letters from offset next on. It returns none when the broker has none ready.
func (r redrive) fetch(ctx context.Context, id int, next int64) (letters []kafka.Message, err error) {
	res, err := r.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: r.topic, Partition: id, Offset: next, MinBytes: 1, MaxBytes: int64(r.batchBytes), MaxWait: redriveFetch,
	})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	for {
		rec, err := res.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return letters, nil
		}
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		if rec.Offset < next {
			continue // a batch may begin before the requested offset
		}
		m := kafka.Message{Topic: r.topic, Partition: id, Offset: rec.Offset, Headers: rec.Headers}
		if m.Key, err = kafka.ReadAll(rec.Key); err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		if m.Value, err = kafka.ReadAll(rec.Value); err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		letters = append(letters, m)
	}
}

// send sends one letter back to its origin.
func (r redrive) send(ctx context.Context, letter kafka.Message) error {
	m := fromKafka(r.prefix, letter)
	m.Topic = m.Headers[HeaderTopic]
	if m.Topic == "" {
		return fmt.Errorf("partition %d, offset %d: %w", letter.Partition, letter.Offset, errNoOrigin)
	}
	for _, h := range []string{HeaderTopic, HeaderPartition, HeaderOffset, HeaderError} {
		delete(m.Headers, h)
	}
	return r.writer.Produce(ctx, m)
}

// committed returns the group's offset, or -1 if it never committed one.
func (r redrive) committed(ctx context.Context, id int) (int64, error) {
	var res *kafka.OffsetFetchResponse
	err := retryUntilReached(ctx, redrivePause, func() (again bool, err error) {
		res, err = r.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: r.group, Topics: map[string][]int{r.topic: {id}}})
		if err != nil {
			return false, err
		}
		var said kafka.Error // a coordinator that is not ready yet does not mean a new group
		return errors.As(res.Error, &said) && said.Temporary(), res.Error
	})
	switch {
	case errors.Is(err, kafka.GroupIdNotFound):
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("fetch offset: %w", err)
	}
	list := res.Topics[r.topic]
	if len(list) == 0 {
		return -1, nil
	}
	if err := list[0].Error; err != nil {
		return 0, fmt.Errorf("fetch offset: %w", err)
	}
	return list[0].CommittedOffset, nil
}

func (r redrive) commit(ctx context.Context, id int, next int64) error {
	res, err := r.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: r.group, GenerationID: -1, // not a member: no consumer ever joins this group
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
