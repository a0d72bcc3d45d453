package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
)

// Handler applies the effect of one message. nil commits the message. ErrPoison sends it to the dead-letter topic after a few
// attempts. Any other error blocks the partition, and the message is retried indefinitely. ctx ends when the partition moves to
// another process.
type Handler func(ctx context.Context, m Message) error

// Consumer handles the messages of Topics as a member of Group: the messages of one partition in order, and partitions
// in parallel, so that a blocked partition blocks no other.
type Consumer struct {
	Cluster
	Group  string
	Topics []string
	Handle Handler
	// HandleBatch, when set, handles several messages of one partition in one call: either all take effect or none does. After an
	// error, or ErrSeparate, Handle receives them one by one.
	HandleBatch func(ctx context.Context, batch []Message) error
	BatchBytes  int // of the batches of all partitions; 0: DefaultBatchBytes
	// FetchWait is how long a broker delays its response to collect more messages of a partition. 0: it responds as soon as it has
	// a message. A longer wait reduces the load on the broker and the database. Use it for consumers that are not time-critical.
	FetchWait  time.Duration
	DeadLetter Producer // nil: its own Writer
	Log        *slog.Logger
	Metrics    prometheus.Registerer // nil: none

	lag     *prometheus.GaugeVec
	handled *prometheus.CounterVec
	client  *kafka.Client
}

const (
	commitEvery   = 100 * time.Millisecond
	commitTimeout = 5 * time.Second
	rejoinPause   = 200 * time.Millisecond // the library's default of 5 s would delay a new group's first message
	sessionLimit  = 10 * time.Second       // after which the partitions of a killed member move to others
	lagEvery      = 5 * time.Second        // how often the lag of all partitions is measured
)

// Run consumes until ctx ends. It returns nil after it commits the last offsets. A topic that the brokers do not know is an error:
// create it, and call Run again. Do not call Run twice at the same time.
func (c *Consumer) Run(ctx context.Context) error {
	if c.DeadLetter == nil {
		w := NewWriter(c.Cluster, Topic{Name: DeadLetterTopic(c.Group)})
		defer w.Close()
		c.DeadLetter = w
	}
	client, release := c.newClient(commitTimeout)
	defer release()
	c.client = client
	if err := c.register(); err != nil {
		return err
	}
	topics := make([]string, len(c.Topics))
	for i, t := range c.Topics {
		topics[i] = c.Prefix + t
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.Prefix + c.Group, Brokers: c.Brokers, Dialer: c.dialer(), Topics: topics, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: sessionLimit / 5, SessionTimeout: sessionLimit, RebalanceTimeout: sessionLimit,
		JoinGroupBackoff: rejoinPause, Timeout: commitTimeout,
		WatchPartitionChanges: true, PartitionWatchInterval: 10 * time.Second,
		ErrorLogger: kafka.LoggerFunc(func(f string, a ...any) { c.Log.Debug("kafka group: " + fmt.Sprintf(f, a...)) }),
	})
	if err != nil {
		return fmt.Errorf("consumer group %s: %w", c.Group, err)
	}
	defer group.Close()
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			c.Log.Warn("cannot join consumer group, trying again", slog.String("group", c.Group), slog.Any("error", err))
		default:
			if err := c.unknown(ctx, topics); err != nil {
				return err
			}
			c.start(gen)
		}
	}
}

// unknown returns an error if the brokers respond but do not know one of topics. Otherwise a group would rejoin endlessly. It
// queries the brokers each time, because they may have lost their disks.
func (c *Consumer) unknown(ctx context.Context, topics []string) error {
	client, release := c.newClient(commitTimeout)
	defer release()
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil
	}
	for _, t := range meta.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			return fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
	}
	return nil
}

func (c *Consumer) register() error {
	labels := prometheus.Labels{"group": c.Group}
	c.lag = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kafka_consumer_lag", Help: "Messages that have not been processed.", ConstLabels: labels,
	}, []string{"topic", "partition"})
	c.handled = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kafka_consumer_messages_total", Help: "Message processing attempts, by result: ok, held or dead.", ConstLabels: labels,
	}, []string{"topic", "result"})
	if c.Metrics == nil {
		return nil
	}
	if err := register(c.Metrics, &c.lag); err != nil {
		return err
	}
	return register(c.Metrics, &c.handled)
}

// register registers *m, or uses the metric that an earlier run of the same group registered.
func register[M prometheus.Collector](reg prometheus.Registerer, m *M) error {
	err := reg.Register(*m)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(M); ok {
			*m = old
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("metrics of a consumer: %w", err)
	}
	return nil
}

// start runs one generation of the group: one reader per assigned partition, and one committer.
func (c *Consumer) start(gen *kafka.Generation) {
	c.lag.Reset()
	done := &offsets{at: map[string]map[int]int64{}}
	var list []*partition
	for topic, assigned := range gen.Assignments {
		for _, a := range assigned {
			p := &partition{Consumer: c, topic: topic, id: a.ID, done: done}
			p.next.Store(a.Offset)
			list = append(list, p)
		}
	}
	bytes := c.BatchBytes
	if bytes == 0 {
		bytes = DefaultBatchBytes
	}
	var readers sync.WaitGroup
	for _, p := range list {
		p.batchBytes = bytes / len(list)
		readers.Add(1)
		gen.Start(func(ctx context.Context) {
			defer readers.Done()
			p.run(ctx)
		})
	}
	gen.Start(func(ctx context.Context) { c.measure(ctx, list) })
	gen.Start(func(ctx context.Context) { c.commit(ctx, gen, done, &readers) })
}

// measure reports the lag of partitions until ctx ends, even while a message is blocked.
func (c *Consumer) measure(ctx context.Context, list []*partition) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range list {
			if _, err := p.measure(ctx); err != nil && ctx.Err() == nil {
				c.Log.Debug("lag is not known", slog.String("topic", p.topic), slog.Int("partition", p.id), slog.Any("error", err))
			}
		}
	}
}

// commit commits the offsets of handled messages a few times a second, and once more when the generation ends.
func (c *Consumer) commit(ctx context.Context, gen *kafka.Generation, done *offsets, readers *sync.WaitGroup) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		ended := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			readers.Wait()
			ended = true
		}
		if batch := done.take(); len(batch) > 0 {
			if err := gen.CommitOffsets(batch); err != nil {
				c.Log.Warn("commit of offsets failed, messages may come twice",
					slog.String("group", c.Group), slog.Any("error", err))
				done.giveBack(batch)
			}
		}
		if ended {
			return
		}
	}
}

// offsets stores the next offsets to commit, by topic and partition.
type offsets struct {
	mu sync.Mutex
	at map[string]map[int]int64
}

func (o *offsets) set(topic string, partition int, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[topic] == nil {
		o.at[topic] = map[int]int64{}
	}
	o.at[topic][partition] = max(next, o.at[topic][partition])
}

func (o *offsets) take() map[string]map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.at
	o.at = map[string]map[int]int64{}
	return at
}

func (o *offsets) giveBack(batch map[string]map[int]int64) {
	for topic, partitions := range batch {
		for id, next := range partitions {
			o.set(topic, id, next)
		}
	}
}
