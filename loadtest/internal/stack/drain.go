package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/proto"
)

// events reads how many events are still to be published or processed.
type events struct {
	outboxes map[string]*pgx.Conn // by service
	kafka    *kgo.Client
	topics   []string            // that at least one service reads
	readers  map[string][]string // topics by consumer group
}

const (
	drainLimit  = time.Minute
	drainEvery  = 100 * time.Millisecond
	drainChecks = 2 // consecutive ones: between the two reads of one check, an event can pass unseen
)

var errWaiting = errors.New("events are still waiting")

// Drain waits until the platform has published every event, and every group has processed the events that it reads.
func (p *Platform) Drain(ctx context.Context) error {
	if p.events == nil {
		opened := &events{outboxes: map[string]*pgx.Conn{}, readers: map[string][]string{}}
		if err := opened.open(ctx, p); err != nil {
			opened.close() //nolint:contextcheck // also after the end of ctx
			return err
		}
		p.events = opened
	}
	clean := 0
	for end := time.Now().Add(drainLimit); ; {
		waiting, err := p.events.waiting(ctx)
		if err != nil && time.Now().After(end) {
			return err
		}
		switch {
		case err != nil || len(waiting) > 0:
			clean = 0
		default:
			if clean++; clean == drainChecks {
				return nil
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w after %v: %s", errWaiting, drainLimit, strings.Join(waiting, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainEvery):
		}
	}
}

// open connects to Kafka and to the databases with an outbox. Call close even after an error.
func (e *events) open(ctx context.Context, p *Platform) error {
	for _, s := range proto.Services() {
		if !s.Kafka() {
			continue
		}
		settings, err := p.Settings(s.Name)
		if err != nil {
			return err
		}
		if e.kafka == nil {
			if e.kafka, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(settings["KAFKA_BROKERS"], ",")...)); err != nil {
				return fmt.Errorf("kafka: %w", err)
			}
		}
		if s.Database && len(s.Topics) > 0 {
			db, err := p.Admin(ctx, settings["DATABASE_URL"])
			if err != nil {
				return err
			}
			e.outboxes[s.Name] = db
		}
		e.add(settings["KAFKA_TOPIC_PREFIX"], s)
	}
	return nil
}

// add adds the topics that a service reads.
func (e *events) add(prefix string, s proto.Service) {
	for _, name := range s.Reads {
		topic := prefix + name
		e.readers[prefix+s.Name] = append(e.readers[prefix+s.Name], topic)
		if !slices.Contains(e.topics, topic) {
			e.topics = append(e.topics, topic)
		}
	}
}

// waiting names the outboxes and groups with events.
func (e *events) waiting(ctx context.Context) ([]string, error) {
	var all []string
	for service, db := range e.outboxes {
		var filled bool
		if err := db.QueryRow(ctx, `select exists (select from outbox)`).Scan(&filled); err != nil {
			return nil, fmt.Errorf("outbox of %s: %w", service, err)
		}
		if filled {
			all = append(all, "outbox of "+service)
		}
	}
	admin := kadm.NewClient(e.kafka)
	ends, err := admin.ListEndOffsets(ctx, e.topics...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, fmt.Errorf("offsets of Kafka: %w", err)
	}
	committed := admin.FetchManyOffsets(ctx, slices.Collect(maps.Keys(e.readers))...)
	for group, topics := range e.readers {
		if err := committed[group].Err; err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // the embedded broker's error before the first commit
			return nil, fmt.Errorf("offsets of %s: %w", group, err)
		}
		if n := lag(topics, ends, committed[group].Fetched); n > 0 {
			all = append(all, fmt.Sprintf("%d for %s", n, group))
		}
	}
	return all, nil
}

// lag returns how many messages a group has not processed. Without a committed offset, it reads a partition from its
// beginning.
func lag(topics []string, ends kadm.ListedOffsets, committed kadm.OffsetResponses) int64 {
	var sum int64
	for _, topic := range topics {
		for partition, end := range ends[topic] {
			done, _ := committed.Lookup(topic, partition)
			sum += end.Offset - done.At
		}
	}
	return sum
}

// TopicBytes returns the size of the topics in Kafka, without Kafka's own topics. Drain must have been called.
func (p *Platform) TopicBytes(ctx context.Context) (sum int64, err error) {
	all, err := kadm.NewClient(p.events.kafka).DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("sizes of topics: %w", err)
	}
	all.Each(func(dir kadm.DescribedLogDir) {
		err = errors.Join(err, dir.Err)
		for topic, partitions := range dir.Topics {
			for _, one := range partitions {
				if !strings.HasPrefix(topic, "__") {
					sum += one.Size
				}
			}
		}
	})
	return sum, err
}

// close closes the connections.
func (e *events) close() {
	if e == nil {
		return
	}
	for _, db := range e.outboxes {
		_ = db.Close(context.Background())
	}
	if e.kafka != nil {
		e.kafka.Close()
	}
}
