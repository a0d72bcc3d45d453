package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/trace"

	"holdfast.dev/libs/obs"
)

const (
	handleTimeout = 30 * time.Second // of one attempt
	firstHold     = 100 * time.Millisecond
	lastHold      = 10 * time.Second
	maxErrorText  = 500
)

// poisonPauses are the pauses between the attempts to handle a poison message, below 5 s in total.
var poisonPauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}

// Headers of a dead letter. The dead letter also has the original message's headers.
const (
	HeaderTopic     = "x-original-topic"
	HeaderPartition = "x-original-partition"
	HeaderOffset    = "x-original-offset"
	HeaderError     = "x-error"
)

// partition is one partition while it is assigned to this member.
type partition struct {
	*member
	place
	next, end atomic.Int64    // the offset after the last handled message, or 0; the offset after the last message of the partition
	ctx       context.Context //nolint:containedctx // ends when the partition moves to another member
	cancel    context.CancelFunc

	mu       sync.Mutex
	working  bool          // start was called, and its records are not handled
	paused   bool          // the partition is not fetched
	finished chan struct{} // closed when the records are handled
	blocked  chan struct{} // closed when a record was not handled at the first attempt
}

func newPartition(m *member, at place) *partition {
	p := &partition{member: m, place: at}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// start handles records in a goroutine: in batches if possible, and otherwise one by one. The earlier ones must be finished.
func (p *partition) start(records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.finished, p.blocked = true, make(chan struct{}), make(chan struct{})
	go func() {
		defer p.finish()
		p.complete(records)
	}()
}

// complete handles records until all are handled or the partition moves.
func (p *partition) complete(records []*kgo.Record) {
	rest := &portion{p, records}
	if p.HandleBatch != nil {
		p.inBatches(p.ctx, []*portion{rest})
	}
	for _, r := range rest.records {
		if !p.process(p.ctx, r) {
			return
		}
		p.passed(r)
	}
}

// detach stops the fetches of the partition until its records are handled.
func (p *partition) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working && !p.paused {
		p.paused = true
		p.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.id}})
	}
}

func (p *partition) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused = false
		p.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.id}})
	}
	p.working = false
	close(p.finished)
}

// stop ends the handler and waits for it.
func (p *partition) stop() {
	p.cancel()
	p.mu.Lock()
	finished := p.finished
	p.mu.Unlock()
	if finished != nil {
		<-finished
	}
}

// handleBatch handles all messages of a batch in one call. It returns false when they must be handled separately.
func (c *Consumer) handleBatch(ctx context.Context, batch []*kgo.Record) bool {
	list := make([]Message, len(batch))
	for i, r := range batch {
		list[i] = fromKafka(c.Prefix, r)
	}
	separate := false
	err := c.traced(ctx, batch[0], list[0], slog.Int("messages", len(batch)), func(ctx context.Context) error {
		accepted, err := c.filter(ctx, list)
		if err != nil || len(accepted) == 0 {
			return err
		}
		err = c.HandleBatch(ctx, accepted)
		if separate = errors.Is(err, ErrSeparate); separate {
			return nil
		}
		return err
	})
	if err != nil || separate {
		return false
	}
	c.handled.WithLabelValues(list[0].Topic, "ok").Add(float64(len(batch)))
	return true
}

// process completes one message: it handles the message or stores it in the dead-letter topic. It returns false if ctx ended first.
func (p *partition) process(ctx context.Context, raw *kgo.Record) bool {
	m := fromKafka(p.Prefix, raw)
	hold, refused := firstHold, 0
	for ctx.Err() == nil {
		err := p.try(ctx, raw, m)
		switch {
		case err == nil:
			p.handled.WithLabelValues(m.Topic, "ok").Inc()
			return true
		case ctx.Err() != nil:
			return false
		}
		p.block()
		switch {
		case errors.Is(err, ErrPoison) && refused < len(poisonPauses):
			pause(ctx, poisonPauses[refused])
			refused++
			continue
		case errors.Is(err, ErrPoison):
			if err = p.deadLetter(ctx, raw, m, err); err == nil {
				p.handled.WithLabelValues(m.Topic, "dead").Inc()
				return true
			}
		}
		p.handled.WithLabelValues(m.Topic, "held").Inc()
		pause(ctx, hold/2+rand.N(hold/2)) //nolint:gosec // jitter
		hold = min(2*hold, lastHold)
	}
	return false
}

// block reports that the partition's records take longer.
func (p *partition) block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.blocked:
	default:
		close(p.blocked)
	}
}

// try runs the handler once.
func (p *partition) try(ctx context.Context, raw *kgo.Record, m Message) error {
	return p.traced(ctx, raw, m, slog.Int("messages", 1), func(ctx context.Context) error {
		accepted, err := p.filter(ctx, []Message{m})
		if err != nil || len(accepted) == 0 {
			return err
		}
		return p.Handle(ctx, m)
	})
}

func (c *Consumer) filter(ctx context.Context, list []Message) ([]Message, error) {
	if c.Filter == nil {
		return list, nil
	}
	return c.Filter(ctx, list)
}

// traced runs handle in the trace of the sender of m, the first message, and writes the log line.
func (c *Consumer) traced(ctx context.Context, raw *kgo.Record, m Message, count slog.Attr, handle func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	ctx, line := obs.WithLine(obs.WithTraceparent(ctx, m.Headers["traceparent"]))
	ctx, end := obs.Span(ctx, c.Group+" "+m.Topic, trace.SpanKindConsumer)
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			line.Add(slog.String("stack", string(debug.Stack())))
			err = Poison(fmt.Errorf("panic: %v", v))
		}
		end(err)
		attrs := []slog.Attr{
			slog.String("group", c.Group), slog.String("topic", m.Topic), slog.Int("partition", int(raw.Partition)),
			slog.Int64("offset", raw.Offset), slog.String("key", m.Key), count,
			slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000),
			slog.Float64("age_ms", float64(time.Since(raw.Timestamp).Milliseconds())),
			slog.String("trace_id", trace.SpanContextFromContext(ctx).TraceID().String()),
		}
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("error", err))
		}
		c.Log.LogAttrs(ctx, level, "message", append(attrs, line.Attrs()...)...)
	}()
	return handle(ctx)
}

// deadLetter sends the message to the dead-letter topic, with its origin and the cause.
func (p *partition) deadLetter(ctx context.Context, raw *kgo.Record, m Message, cause error) error {
	headers := map[string]string{
		HeaderTopic: m.Topic, HeaderPartition: strconv.Itoa(int(p.id)), HeaderOffset: strconv.FormatInt(raw.Offset, 10),
		HeaderError: cut(cause.Error()),
	}
	for k, v := range m.Headers {
		if _, ours := headers[k]; !ours {
			headers[k] = v
		}
	}
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	err := p.DeadLetter.Produce(ctx, Message{Topic: DeadLetterTopic(p.Group), Key: m.Key, Value: m.Value, Headers: headers})
	if err != nil {
		p.Log.Error("dead letter not written; partition paused", slog.String("topic", m.Topic),
			slog.Int64("offset", raw.Offset), slog.Any("error", err))
	}
	return err
}

func cut(s string) string {
	if len(s) > maxErrorText {
		return s[:maxErrorText]
	}
	return s
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
