package kafkax

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
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
	m := newMember(c)
	client, err := kgo.NewClient(c.options(c.groupOptions(m)...)...)
	if err != nil {
		return fmt.Errorf("consumer group %s: %w", c.Group, err)
	}
	m.client, m.admin = client, kadm.NewClient(client)
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	go m.commitRegularly(running)
	go m.watch(running, end)
	err = m.poll(running)
	m.close(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(err, context.Cause(running))
}

func (c *Consumer) groupOptions(m *member) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(c.Prefix + c.Group), kgo.ConsumeTopics(c.prefixed()...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(m.assign), kgo.OnPartitionsRevoked(m.revoke), kgo.OnPartitionsLost(m.lose),
		kgo.HeartbeatInterval(sessionLimit / 5), kgo.SessionTimeout(sessionLimit), kgo.RebalanceTimeout(rebalanceLimit),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytesEach), kgo.FetchMaxWait(idleWait),
	}
	if c.FetchWait > 0 {
		opts = append(opts, kgo.FetchMinBytes(fetchBytes/2), kgo.FetchMaxWait(c.FetchWait))
	}
	return opts
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
