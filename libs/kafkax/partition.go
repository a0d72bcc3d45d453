package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"holdfast.dev/libs/obs"
)

const (
	stalled       = 10 * time.Second // time without a message after which the reader is checked
	heldBack      = 2 * time.Second  // how much longer than its own wait a broker may hold back a message
	handleTimeout = 30 * time.Second // of one attempt
	firstHold     = 100 * time.Millisecond
	lastHold      = 10 * time.Second
	maxErrorText  = 500
	maxBatch      = 200
	gatherFor     = 5 * time.Millisecond
	idleWait      = 500 * time.Millisecond // of a broker that has no message
	fetchBytes    = 1 << 20                // of one response; the broker sends at least one batch of a writer
	fetchAhead    = 1                      // messages that a reader fetches in advance; they may be large
)

// DefaultBatchBytes bounds the bytes of a batch when BatchBytes is zero.
const DefaultBatchBytes = 8 << 20

// poisonPauses are the pauses between the attempts to handle a poison message, below 5 s in total.
var poisonPauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}

// Headers of a dead letter. The dead letter also has the original message's headers.
const (
	HeaderTopic     = "x-original-topic"
	HeaderPartition = "x-original-partition"
	HeaderOffset    = "x-original-offset"
	HeaderError     = "x-error"
)

// partition reads one partition during one generation of the group.
type partition struct {
	*Consumer
	topic      string // with prefix
	id         int
	batchBytes int          // this partition's share; a larger message is handled alone
	next       atomic.Int64 // offset, or kafka.FirstOffset
	done       *offsets
	ahead      *kafka.Message // read, but too large for the previous batch
}

// run reads and handles until ctx ends. If a reader returns nothing although messages are available, it stalled and is replaced.
func (p *partition) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.read(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn("reading again", slog.String("topic", p.topic), slog.Int("partition", p.id), slog.Any("error", err))
			pause(ctx, rejoinPause)
		}
	}
}

func (p *partition) read(ctx context.Context) error {
	enough, wait := 1, idleWait
	if p.FetchWait > 0 {
		enough, wait = fetchBytes/2, p.FetchWait
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: p.Brokers, Dialer: p.dialer(), Topic: p.topic, Partition: p.id,
		MinBytes: enough, MaxBytes: fetchBytes, QueueCapacity: fetchAhead, MaxWait: wait, ReadBatchTimeout: stalled,
		ReadBackoffMin: 50 * time.Millisecond, ReadBackoffMax: time.Second, ReadLagInterval: -1,
		ErrorLogger: kafka.LoggerFunc(func(f string, a ...any) { p.Log.Debug("kafka reader: " + fmt.Sprintf(f, a...)) }),
	})
	defer reader.Close()
	p.ahead = nil
	if err := reader.SetOffset(p.next.Load()); err != nil {
		return fmt.Errorf("set offset: %w", err)
	}
	patience, overdue := stalled, false
	for {
		waiting, cancel := context.WithTimeout(ctx, patience)
		m, err := p.fetch(waiting, reader)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			err := p.check(ctx)
			if errors.Is(err, errStalled) && !overdue {
				patience, overdue = wait+heldBack, true // a broker may delay it until then
				continue
			}
			if err != nil {
				return err
			}
			patience, overdue = stalled, false
			continue
		case err != nil:
			return fmt.Errorf("fetch: %w", err)
		}
		patience, overdue = stalled, false
		if !p.take(ctx, p.gather(ctx, reader, m)) {
			return nil
		}
	}
}

// fetch returns the next message.
func (p *partition) fetch(ctx context.Context, reader *kafka.Reader) (kafka.Message, error) {
	if m := p.ahead; m != nil {
		p.ahead = nil
		return *m, nil
	}
	return reader.FetchMessage(ctx)
}

// gather adds the messages after first that already arrived, if HandleBatch is set: up to maxBatch messages and batchBytes in
// total.
func (p *partition) gather(ctx context.Context, reader *kafka.Reader, first kafka.Message) []kafka.Message {
	batch, bytes := []kafka.Message{first}, len(first.Value)
	if p.HandleBatch == nil {
		return batch
	}
	waiting, cancel := context.WithTimeout(ctx, gatherFor)
	defer cancel()
	for last := first; len(batch) < maxBatch && bytes < p.batchBytes && last.HighWaterMark > last.Offset+1; {
		m, err := p.fetch(waiting, reader)
		if err != nil {
			break // the next call of fetch returns the error again
		}
		if bytes += len(m.Value); bytes > p.batchBytes {
			p.ahead = &m
			break
		}
		batch, last = append(batch, m), m
	}
	return batch
}

// take completes messages: in one batch if possible, otherwise one by one. It returns false if ctx ended first.
func (p *partition) take(ctx context.Context, batch []kafka.Message) bool {
	last := batch[len(batch)-1]
	if len(batch) > 1 && p.handleBatch(ctx, batch) {
		p.passed(last)
		return true
	}
	for _, m := range batch {
		if !p.process(ctx, m) {
			return false
		}
		p.passed(m)
	}
	return true
}

func (p *partition) passed(m kafka.Message) {
	next := m.Offset + 1
	p.next.Store(next)
	p.done.set(p.topic, p.id, next)
	p.gauge(m.HighWaterMark - next)
}

// handleBatch handles all messages of a batch in one call. It returns false when each message must be handled separately.
func (p *partition) handleBatch(ctx context.Context, batch []kafka.Message) bool {
	list := make([]Message, len(batch))
	for i, m := range batch {
		list[i] = fromKafka(p.Prefix, m)
	}
	separate := false
	err := p.traced(ctx, batch[0], list[0], slog.Int("messages", len(batch)), func(ctx context.Context) error {
		err := p.HandleBatch(ctx, list)
		if separate = errors.Is(err, ErrSeparate); separate {
			return nil
		}
		return err
	})
	if err != nil || separate {
		return false
	}
	p.handled.WithLabelValues(list[0].Topic, "ok").Add(float64(len(batch)))
	return true
}

var (
	errStalled   = errors.New("reader stalled: messages wait, but it returns none")
	errRecreated = errors.New("the topic was created again: its offsets begin again")
)

// check examines a partition without new messages. Its reader may have stalled, or may wait for an offset that the partition does
// not have.
func (p *partition) check(ctx context.Context) error {
	lag, err := p.measure(ctx)
	switch {
	case err != nil:
		return err
	case lag < 0:
		p.next.Store(kafka.FirstOffset)
		return errRecreated
	case lag > 0:
		return errStalled
	}
	return nil
}

// measure reads the lag and reports it. The lag is negative when the partition ends before the next offset.
func (p *partition) measure(ctx context.Context) (int64, error) {
	first, last, err := bounds(ctx, p.client, p.topic, p.id)
	if err != nil {
		return 0, err
	}
	lag := last - max(p.next.Load(), first)
	p.gauge(lag)
	return lag, nil
}

func (p *partition) gauge(lag int64) {
	p.lag.WithLabelValues(p.topic[len(p.Prefix):], strconv.Itoa(p.id)).Set(float64(max(lag, 0)))
}

// process completes one message: it handles the message or stores it in the dead-letter topic. It returns false if ctx ended first.
func (p *partition) process(ctx context.Context, raw kafka.Message) bool {
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

// try runs the handler once.
func (p *partition) try(ctx context.Context, raw kafka.Message, m Message) error {
	return p.traced(ctx, raw, m, slog.Int("messages", 1), func(ctx context.Context) error { return p.Handle(ctx, m) })
}

// traced runs handle in the trace of the sender of m, the first message, and writes the log line.
func (p *partition) traced(ctx context.Context, raw kafka.Message, m Message, count slog.Attr, handle func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	ctx, line := obs.WithLine(obs.WithTraceparent(ctx, m.Headers["traceparent"]))
	ctx, end := obs.Span(ctx, p.Group+" "+m.Topic, trace.SpanKindConsumer)
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			line.Add(slog.String("stack", string(debug.Stack())))
			err = Poison(fmt.Errorf("panic: %v", v))
		}
		end(err)
		attrs := []slog.Attr{
			slog.String("group", p.Group), slog.String("topic", m.Topic), slog.Int("partition", p.id),
			slog.Int64("offset", raw.Offset), slog.String("key", m.Key), count,
			slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000),
			slog.Float64("age_ms", float64(time.Since(raw.Time).Milliseconds())),
			slog.String("trace_id", trace.SpanContextFromContext(ctx).TraceID().String()),
		}
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("error", err))
		}
		p.Log.LogAttrs(ctx, level, "message", append(attrs, line.Attrs()...)...)
	}()
	return handle(ctx)
}

// deadLetter sends the message to the dead-letter topic, with its origin and the cause.
func (p *partition) deadLetter(ctx context.Context, raw kafka.Message, m Message, cause error) error {
	headers := map[string]string{
		HeaderTopic: m.Topic, HeaderPartition: strconv.Itoa(p.id), HeaderOffset: strconv.FormatInt(raw.Offset, 10),
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
		p.Log.Error("dead letter could not be written, partition is held", slog.String("topic", m.Topic),
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
