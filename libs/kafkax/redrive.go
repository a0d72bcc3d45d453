package kafkax

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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
	admin, release, err := c.admin()
	if err != nil {
		return 0, err
	}
	defer release()
	writer := NewWriter(c)
	defer writer.Close()
	r := redrive{
		cluster: c, admin: admin, writer: writer, batchBytes: batchBytes, max: max,
		topic: c.Prefix + DeadLetterTopic(group), group: c.Prefix + group + ".redrive",
	}
	if err := r.run(ctx); err != nil {
		return r.sent, fmt.Errorf("redrive %s: %w", group, err)
	}
	return r.sent, errors.Join(r.skipped...)
}

type redrive struct {
	cluster         Cluster
	admin           *kadm.Client
	writer          *Writer
	topic, group    string
	batchBytes, max int

	sent    int
	skipped []error // each is errNoOrigin
}

// run reads the letters of all partitions from the committed offsets up to the present ends.
func (r *redrive) run(ctx context.Context) error {
	from, end, err := r.bounds(ctx)
	if err != nil || len(from) == 0 {
		return err
	}
	reader, err := kgo.NewClient(r.cluster.options(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: from}), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(int32(r.batchBytes)), kgo.FetchMaxPartitionBytes(int32(r.batchBytes)), kgo.MaxConcurrentFetches(1),
	)...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for len(from) > 0 && !r.complete() {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		for _, letter := range fetches.Records() {
			if _, open := from[letter.Partition]; !open || r.complete() {
				continue // written after the start, or more than max
			}
			if err := r.send(ctx, letter); err != nil {
				return err
			}
			if letter.Offset+1 >= end[letter.Partition] {
				delete(from, letter.Partition)
			}
		}
	}
	return nil
}

func (r *redrive) complete() bool { return r.max > 0 && r.sent == r.max }

// bounds returns the offset of the next letter of each partition that has one, and the offset after the last letter of each.
func (r *redrive) bounds(ctx context.Context) (from map[int32]kgo.Offset, end map[int32]int64, err error) {
	starts, err := r.admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list offsets: %w", err)
	}
	ends, err := r.admin.ListEndOffsets(ctx, r.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list offsets: %w", err)
	}
	committed, err := committed(ctx, r.admin, r.group, r.topic)
	if err != nil {
		return nil, nil, err
	}
	from, end = map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { end[o.Partition] = o.Offset })
	starts.Each(func(o kadm.ListedOffset) {
		if next := max(o.Offset, committed[o.Partition]); next < end[o.Partition] {
			from[o.Partition] = kgo.NewOffset().At(next)
		}
	})
	return from, end, nil
}

// committed returns the offsets that the group committed, none if it is new.
func committed(ctx context.Context, admin *kadm.Client, group, topic string) (map[int32]int64, error) {
	list, err := admin.FetchOffsetsForTopics(ctx, group, topic)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err == nil {
		err = list.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offset: %w", err)
	}
	out := map[int32]int64{}
	list.Each(func(o kadm.OffsetResponse) { out[o.Partition] = o.At })
	return out, nil
}

// send sends one letter back to its origin and commits its offset.
func (r *redrive) send(ctx context.Context, letter *kgo.Record) error {
	m := fromKafka(r.cluster.Prefix, letter)
	m.Topic = m.Headers[HeaderTopic]
	if m.Topic == "" {
		r.skipped = append(r.skipped, fmt.Errorf("partition %d, offset %d: %w", letter.Partition, letter.Offset, errNoOrigin))
	} else {
		for _, h := range []string{HeaderTopic, HeaderPartition, HeaderOffset, HeaderError} {
			delete(m.Headers, h)
		}
		if err := r.writer.Produce(ctx, m); err != nil {
			return err
		}
		r.sent++
	}
	next := kadm.Offsets{}
	next.AddOffset(r.topic, letter.Partition, letter.Offset+1, letter.LeaderEpoch)
	if err := r.admin.CommitAllOffsets(ctx, r.group, next); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
