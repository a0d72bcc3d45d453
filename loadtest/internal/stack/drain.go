package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"holdfast.dev/proto"
)

// readyLimit is how long the services may take until they are ready after they were stopped.
const readyLimit = 30 * time.Second

// awaitReady waits until every service reports that it is ready.
func (p *Platform) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	names, err := p.running()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := proto.ServiceNamed(name); !ok {
			continue
		}
		settings, err := p.Settings(name)
		if err != nil {
			return err
		}
		for {
			err := checkOK(ctx, "http://"+settings["HTTP_ADDR"]+"/readyz")
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not ready again: %w", name, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// events reads how many events are still to be published or processed.
type events struct {
	outboxes map[string]*pgx.Conn // by service
	kafka    *kafka.Client
	readers  []reader
	bounds   map[string][]kafka.OffsetRequest // of each topic
}

// reader is a consumer group with its topics and their partitions.
type reader struct {
	service, group string
	topics         map[string][]int
}

const (
	kafkaTimeout = 5 * time.Second
	drainLimit   = time.Minute
	drainEvery   = 100 * time.Millisecond
	drainChecks  = 2 // consecutive ones: between the two reads of one check, an event can pass unseen
)

var errWaiting = errors.New("events are still waiting")

// Drain waits until the platform has published every event, and every group has processed the events that it reads.
func (p *Platform) Drain(ctx context.Context) error {
	if p.events == nil {
		opened, err := p.openEvents(ctx)
		if err != nil {
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

func (p *Platform) openEvents(ctx context.Context) (*events, error) {
	e := &events{outboxes: map[string]*pgx.Conn{}, bounds: map[string][]kafka.OffsetRequest{}}
	for _, s := range proto.Services() {
		if !s.Kafka() {
			continue
		}
		settings, err := p.Settings(s.Name)
		if err != nil {
			return nil, err
		}
		if e.kafka == nil {
			e.kafka = &kafka.Client{
				Addr: kafka.TCP(strings.Split(settings["KAFKA_BROKERS"], ",")...), Timeout: kafkaTimeout, Transport: &kafka.Transport{},
			}
		}
		if err := e.open(ctx, s, settings, p.Env["POSTGRES_URL"]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// open adds a service.
func (e *events) open(ctx context.Context, s proto.Service, settings map[string]string, admin string) error {
	if len(s.Topics) > 0 {
		address, err := inDatabase(admin, settings["DATABASE_URL"])
		if err != nil {
			return err
		}
		if e.outboxes[s.Name], err = pgx.Connect(ctx, address); err != nil {
			return err
		}
	}
	if len(s.Reads) == 0 {
		return nil
	}
	prefix := settings["KAFKA_TOPIC_PREFIX"]
	topics := make([]string, len(s.Reads))
	for i, name := range s.Reads {
		topics[i] = prefix + name
	}
	meta, err := e.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return fmt.Errorf("topics of %s: %w", s.Name, err)
	}
	one := reader{service: s.Name, group: prefix + s.Name, topics: map[string][]int{}}
	for _, t := range meta.Topics {
		if t.Error != nil {
			return fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		e.bounds[t.Name] = nil
		for _, partition := range t.Partitions {
			one.topics[t.Name] = append(one.topics[t.Name], partition.ID)
			e.bounds[t.Name] = append(e.bounds[t.Name], kafka.FirstOffsetOf(partition.ID), kafka.LastOffsetOf(partition.ID))
		}
	}
	e.readers = append(e.readers, one)
	return nil
}

// inDatabase returns the address of the server admin for the database of another address.
func inDatabase(admin, other string) (string, error) {
	from, err := url.Parse(other)
	if err != nil {
		return "", err
	}
	to, err := url.Parse(admin)
	if err != nil {
		return "", err
	}
	to.Path = from.Path
	return to.String(), nil
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
	bounds, err := e.kafka.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: e.bounds})
	if err != nil {
		return nil, fmt.Errorf("offsets of Kafka: %w", err)
	}
	for _, r := range e.readers {
		done, err := e.kafka.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: r.group, Topics: r.topics})
		if err = errors.Join(err, offsetError(done)); err != nil {
			return nil, fmt.Errorf("offsets of %s: %w", r.service, err)
		}
		if n := lag(bounds.Topics, done.Topics); n > 0 {
			all = append(all, fmt.Sprintf("%d for %s", n, r.service))
		}
	}
	return all, nil
}

func offsetError(res *kafka.OffsetFetchResponse) error {
	if res == nil {
		return nil
	}
	return res.Error
}

// lag returns how many messages a group has not processed. A partition without a committed offset is read from its beginning.
func lag(bounds map[string][]kafka.PartitionOffsets, done map[string][]kafka.OffsetFetchPartition) int64 {
	var sum int64
	for topic, partitions := range done {
		for _, p := range partitions {
			i := slices.IndexFunc(bounds[topic], func(b kafka.PartitionOffsets) bool { return b.Partition == p.Partition })
			if i < 0 {
				continue
			}
			sum += bounds[topic][i].LastOffset - max(p.CommittedOffset, bounds[topic][i].FirstOffset)
		}
	}
	return sum
}

// close closes the connections.
func (e *events) close() {
	if e == nil {
		return
	}
	for _, db := range e.outboxes {
		_ = db.Close(context.Background())
	}
	if t, ok := e.kafka.Transport.(*kafka.Transport); ok {
		t.CloseIdleConnections()
	}
}
