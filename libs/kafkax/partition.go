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

// partition is one partition during one generation of the group.
type partition struct {
	*member
	place
	next, end atomic.Int64    // the offset after the last handled message; the offset after the last message of the partition
	reset     atomic.Bool     // the next messages do not follow the ones before: the brokers do not have those between
	ctx       context.Context //nolint:containedctx // ends with the generation
	cancel    context.CancelFunc

	mu       sync.Mutex
	leader   int32         // the broker that the partition is fetched from, or noLeader
	position int64         // the offset to fetch, or fromStart
	taken    int64         // the offset after the last message that is being handled
	working  bool          // start was called, and its records are not handled
	paused   bool          // the partition is not fetched
	finished chan struct{} // closed when the records are handled
	blocked  chan struct{} // closed when a record was not handled at the first attempt
}

const (
	noLeader  = -1
	fromStart = -1 // the first offset of the partition
)

// newPartition returns a partition whose next message has an offset, or fromStart.
func newPartition(m *member, at place, offset int64) *partition {
	p := &partition{member: m, place: at, leader: noLeader, position: offset, taken: offset}
	p.next.Store(max(offset, 0))
	p.reset.Store(offset == fromStart)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// requested returns the offset to fetch from a broker, if the partition is fetched from it.
func (p *partition) requested(broker int32) (offset int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position, p.leader == broker && !p.paused
}

// leads reports whether the broker leads the partition.
func (p *partition) leads(broker int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leader == broker
}

// setLeader notes the leader.
func (p *partition) setLeader(broker int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader = broker
}

// lost notes that the broker does not lead the partition, or does not respond.
func (p *partition) lost(broker int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leader == broker {
		p.leader = noLeader
	}
}

// move changes the offset to fetch. It returns false, without a change, if that is no longer from.
func (p *partition) move(from, to int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.position != from {
		return false
	}
	p.position = to
	return true
}

// take reports whether a portion is the next one to handle. If not, for example because earlier records of the partition are blocked,
// the portion is fetched again later.
func (p *partition) take(one *portion) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working || one.from != p.taken && !one.reset {
		p.position = p.taken
		return false
	}
	p.taken = one.next
	return true
}

// start handles records in a goroutine: in batches if possible, and otherwise one by one. The earlier ones must be finished.
func (p *partition) start(records []*record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.finished, p.blocked = true, make(chan struct{}), make(chan struct{})
	go func() {
		defer p.finish()
		p.complete(records)
	}()
}

// complete handles records until all are handled or the generation ends.
func (p *partition) complete(records []*record) {
	rest := &portion{partition: p, records: records}
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

// passed notes that a record is handled.
func (p *partition) passed(r *record) {
	next := r.offset + 1
	p.done.set(p.place, next)
	p.next.Store(next)
	p.gauge(p.topic, p.id, p.end.Load()-next)
}

// detach stops the fetches of the partition until its records are handled.
func (p *partition) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = p.working
}

func (p *partition) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.paused = false, false
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
func (c *Consumer) handleBatch(ctx context.Context, batch []*record) bool {
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
func (p *partition) process(ctx context.Context, raw *record) bool {
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
func (p *partition) try(ctx context.Context, raw *record, m Message) error {
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
func (c *Consumer) traced(ctx context.Context, raw *record, m Message, count slog.Attr, handle func(context.Context) error) (err error) {
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
			slog.String("group", c.Group), slog.String("topic", m.Topic), slog.Int("partition", int(raw.id)),
			slog.Int64("offset", raw.offset), slog.String("key", m.Key), count,
			slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000),
			slog.Float64("age_ms", float64(time.Since(raw.time).Milliseconds())),
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
func (p *partition) deadLetter(ctx context.Context, raw *record, m Message, cause error) error {
	headers := map[string]string{
		HeaderTopic: m.Topic, HeaderPartition: strconv.Itoa(int(p.id)), HeaderOffset: strconv.FormatInt(raw.offset, 10),
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
			slog.Int64("offset", raw.offset), slog.Any("error", err))
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
