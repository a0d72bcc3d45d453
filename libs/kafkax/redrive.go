package kafkax

import (
	"context"
	"errors"
	"fmt"
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
	client := c.client()
	defer client.close()
	writer := NewWriter(c)
	defer writer.Close()
	r := redrive{
		cluster: c, client: client, writer: writer, batchBytes: batchBytes, max: max,
		topic: c.Prefix + DeadLetterTopic(group), group: c.Prefix + group + ".redrive",
	}
	if err := r.run(ctx); err != nil {
		return r.sent, fmt.Errorf("redrive %s: %w", group, err)
	}
	return r.sent, errors.Join(r.skipped...)
}

type redrive struct {
	cluster         Cluster
	client          *client
	writer          *Writer
	topic, group    string
	batchBytes, max int

	sent    int
	skipped []error // each is errNoOrigin
}

// run reads the letters of all partitions from the committed offsets up to the present ends.
func (r *redrive) run(ctx context.Context) error {
	b, err := r.client.bounds(ctx, r.topic)
	if err != nil {
		return err
	}
	committed, err := r.client.committed(ctx, r.group, b.ends)
	if err != nil {
		return err
	}
	for _, at := range b.open(committed) {
		if err := r.partition(ctx, at, max(b.starts[at], committed[at]), b.ends[at]); err != nil {
			return err
		}
	}
	return nil
}

// partition sends the letters of a partition from next to end.
func (r *redrive) partition(ctx context.Context, at place, next, end int64) (err error) {
	for next < end {
		var letters []*record
		if letters, next, err = r.client.read(ctx, at, next, r.batchBytes); err != nil {
			return err
		}
		for _, letter := range letters {
			if letter.offset >= end || r.complete() {
				return nil // written after the start, or more than max
			}
			if err := r.send(ctx, letter); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *redrive) complete() bool { return r.max > 0 && r.sent == r.max }

// send sends one letter back to its origin and commits its offset.
func (r *redrive) send(ctx context.Context, letter *record) error {
	m := fromKafka(r.cluster.Prefix, letter)
	m.Topic = m.Headers[HeaderTopic]
	if m.Topic == "" {
		r.skipped = append(r.skipped, fmt.Errorf("partition %d, offset %d: %w", letter.id, letter.offset, errNoOrigin))
	} else {
		for _, h := range []string{HeaderTopic, HeaderPartition, HeaderOffset, HeaderError} {
			delete(m.Headers, h)
		}
		if err := r.writer.Produce(ctx, m); err != nil {
			return err
		}
		r.sent++
	}
	if err := r.client.commit(ctx, r.group, letter.place, letter.offset+1); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
