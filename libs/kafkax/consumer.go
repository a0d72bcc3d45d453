package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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
	// HandleBatch, when set, handles several messages of one topic in one call: either all take effect or none does. The messages of
	// one partition are in order. After an error, or ErrSeparate, the messages of each partition are handled separately: in one call
	// of HandleBatch, and if that fails too, one by one by Handle.
	HandleBatch func(ctx context.Context, batch []Message) error
	// Filter, when set, returns the messages that are handled. The others are committed without an effect.
	Filter     func(ctx context.Context, list []Message) ([]Message, error)
	BatchBytes int // of one batch; 0: DefaultBatchBytes
	// FetchWait is how long a broker delays its response to collect more messages. 0: it responds as soon as it has a message. A
	// longer wait reduces the load on the broker and the database. Use it for consumers that are not time-critical.
	FetchWait  time.Duration
	DeadLetter Producer // nil: its own Writer
	Log        *slog.Logger
	Metrics    prometheus.Registerer // nil: none

	lag     *prometheus.GaugeVec
	handled *prometheus.CounterVec
}

const (
	commitEvery      = 500 * time.Millisecond
	commitTimeout    = 5 * time.Second
	sessionLimit     = 10 * time.Second // after which the partitions of a killed member move to others
	rebalanceLimit   = 30 * time.Second // in which each member must give up partitions; longer than batchTimeout and soon
	lagEvery         = 5 * time.Second  // how often the lag of all partitions is measured
	idleWait         = 5 * time.Second  // of a broker that has no message
	fetchBytes       = 2 << 20          // of one response of a broker
	fetchBytesEach   = 1 << 20          // of one partition in it; the broker sends at least one batch of a writer
	maxBatch         = 500              // messages
	gatherFor        = 10 * time.Millisecond
	batchTimeout     = 5 * time.Second // of one batch of several partitions, which delays all others
	soon             = time.Second     // how long partitions that are handled separately delay the others
	shutdownDeadline = 3 * time.Second
	firstJoinPause   = 200 * time.Millisecond // after the group has rejected the member
	lastJoinPause    = 5 * time.Second
)

// DefaultBatchBytes bounds the bytes of a batch when BatchBytes is zero.
const DefaultBatchBytes = 8 << 20

// Run consumes until ctx ends. It returns nil after it commits the last offsets. It returns an error if a partition cannot be
// fetched, or if the brokers do not know a topic or created it again: create the topics, and call Run again. Do not call Run twice
// at the same time.
func (c *Consumer) Run(ctx context.Context) error {
	if c.DeadLetter == nil {
		w := NewWriter(c.Cluster, Topic{Name: DeadLetterTopic(c.Group)})
		defer w.Close()
		c.DeadLetter = w
	}
	if err := c.register(); err != nil {
		return err
	}
	wait := firstJoinPause
	for n := 0; ctx.Err() == nil; n++ {
		start := time.Now()
		rejected, err := c.join(ctx, n)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if time.Since(start) > sessionLimit {
			wait = firstJoinPause
		}
		level := slog.LevelDebug // a new group has no coordinator for a moment
		if wait == lastJoinPause {
			level = slog.LevelWarn
		}
		c.Log.Log(ctx, level, "consumer group not joined; trying again", slog.String("group", c.Group), slog.Any("error", rejected))
		pause(ctx, wait)
		wait = min(2*wait, lastJoinPause)
	}
	return nil
}

// join consumes as a member of the group until ctx ends or the group rejects the member. err is the error of Run.
func (c *Consumer) join(ctx context.Context, attempt int) (rejected, err error) {
	shared := &balancer{}
	client := c.client()
	defer client.close()
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.Prefix + c.Group, Topics: c.prefixed(), GroupBalancers: []kafka.GroupBalancer{shared}, StartOffset: kafka.FirstOffset,
		Brokers:           rotated(c.Brokers, attempt), // the library asks the first one that accepts a connection, even if it does not respond
		Dialer:            &kafka.Dialer{ClientID: clientID, DialFunc: c.dial, Timeout: dialTimeout, SASLMechanism: c.SASL},
		HeartbeatInterval: sessionLimit / 5, SessionTimeout: sessionLimit, RebalanceTimeout: rebalanceLimit,
		JoinGroupBackoff: firstJoinPause, Timeout: requestTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer group %s: %w", c.Group, err)
	}
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { go func() { _ = group.Close(); close(left) }() })
	defer func() {
		leave()
		select {
		case <-left:
		case <-time.After(shutdownDeadline):
			c.Log.Debug("consumer group not left", slog.String("group", c.Group))
		}
	}()
	for {
		generation, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, nil
		case errors.Is(err, kafka.RebalanceInProgress):
			continue // the library joins again
		case err != nil:
			return err, nil
		}
		m := newMember(c)
		m.client, m.generation, m.distributed = client, generation, shared.take()
		for topic, list := range generation.Assignments {
			for _, a := range list {
				at := place{topic, int32(a.ID)}
				m.assigned[at] = newPartition(m, at, max(a.Offset, fromStart))
			}
		}
		done := make(chan error, 1)
		generation.Start(func(ended context.Context) { done <- m.run(ctx, ended, leave) })
		if err := <-done; err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
}

func rotated(list []string, n int) []string {
	n %= len(list)
	return slices.Concat(list[n:], list[:n])
}

// balancer is the range balancer. It remembers how many partitions of each topic this member has distributed, if it is the leader of
// the group.
type balancer struct {
	kafka.RangeGroupBalancer
	distributed map[string]int
}

// AssignGroups is called before the generation begins.
func (b *balancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	b.distributed = map[string]int{}
	for _, m := range members {
		for _, topic := range m.Topics {
			b.distributed[topic] = 0
		}
	}
	for _, p := range partitions {
		b.distributed[p.Topic]++
	}
	return b.RangeGroupBalancer.AssignGroups(members, partitions)
}

// take returns the numbers of the last generation, or nil if this member is not its leader.
func (b *balancer) take() map[string]int {
	defer func() { b.distributed = nil }()
	return b.distributed
}

// prefixed returns the names of the topics at the brokers.
func (c *Consumer) prefixed() []string {
	names := make([]string, len(c.Topics))
	for i, t := range c.Topics {
		names[i] = c.Prefix + t
	}
	return names
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

func (c *Consumer) gauge(topic string, id int32, lag int64) {
	c.lag.WithLabelValues(topic[len(c.Prefix):], strconv.Itoa(int(id))).Set(float64(max(lag, 0)))
}
