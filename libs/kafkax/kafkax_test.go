package kafkax_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/obs"
)

const patience = 30 * time.Second

// setup is a new prefix with a topic "things" of four partitions, a dead-letter topic and a writer.
type setup struct {
	cluster kafkax.Cluster
	writer  *kafkax.Writer
}

func prepare(t *testing.T, brokers []string) setup {
	t.Helper()
	return prepareOn(t, kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)})
}

func prepareOn(t *testing.T, c kafkax.Cluster) setup {
	t.Helper()
	s := setup{cluster: c}
	topics := []kafkax.Topic{{Name: "things", Partitions: 4, Retention: time.Hour}, {Name: kafkax.DeadLetterTopic("readers")}}
	for range 2 { // the second time changes nothing
		if err := kafkax.EnsureTopics(t.Context(), s.cluster, topics); err != nil {
			t.Fatal(err)
		}
	}
	s.writer = kafkax.NewWriter(s.cluster)
	t.Cleanup(func() { _ = s.writer.Close() })
	return s
}

func (s setup) produce(t *testing.T, msgs ...kafkax.Message) {
	t.Helper()
	if err := s.writer.Produce(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
}

func thing(key, value string) kafkax.Message {
	return kafkax.Message{Topic: "things", Key: key, Value: []byte(value), Headers: map[string]string{"kind": "thing"}}
}

// seen collects what a handler received.
type seen struct {
	mu     sync.Mutex
	values []string
}

func (s *seen) add(v string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = append(s.values, v)
	return len(s.values)
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values)
}

func (s *seen) count(v string) int {
	n := 0
	for _, one := range s.all() {
		if one == v {
			n++
		}
	}
	return n
}

// consume runs a member of the group until stop is called or the test ends.
func (s setup) consume(t *testing.T, handle kafkax.Handler, change ...func(*kafkax.Consumer)) (stop func()) {
	t.Helper()
	c := &kafkax.Consumer{
		Cluster: s.cluster, Group: "readers", Topics: []string{"things"},
		Handle: handle, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the consumer does not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestEachMessageOnceInOrderPerKey(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const keys, each = 8, 25
		var got seen
		handle := func(_ context.Context, m kafkax.Message) error { got.add(m.Key + "=" + string(m.Value)); return nil }
		stop := s.consume(t, handle)
		var batch []kafkax.Message
		for n := range each {
			for k := range keys {
				batch = append(batch, thing(fmt.Sprint("k", k), fmt.Sprintf("%03d", n)))
			}
		}
		s.produce(t, batch...)
		eventually(t, "all have come", func() bool { return len(got.all()) >= keys*each })
		byKey := map[string][]string{}
		for _, v := range got.all() {
			byKey[v[:2]] = append(byKey[v[:2]], v)
		}
		for k, values := range byKey {
			if len(values) != each || !slices.IsSorted(values) {
				t.Errorf("%s: %v", k, values)
			}
		}
		stop() // commits, so that the next member of the group only gets new messages
		s.consume(t, handle)
		s.produce(t, thing("k0", "new"))
		eventually(t, "the new one has come", func() bool { return got.count("k0=new") == 1 })
		if n := len(got.all()); n != keys*each+1 {
			t.Errorf("%d messages, want %d", n, keys*each+1)
		}
	})
}

func TestNothingIsCommittedBeforeTheEffect(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		entered := make(chan struct{})
		stop := s.consume(t, func(ctx context.Context, _ kafkax.Message) error {
			close(entered)
			<-ctx.Done() // the process ends during the effect
			return ctx.Err()
		})
		s.produce(t, thing("a", "1"))
		<-entered
		stop()
		var got seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error { got.add(string(m.Value)); return nil })
		eventually(t, "it comes again", func() bool { return got.count("1") == 1 })
	})
}

func TestTransientErrorHoldsOnlyItsPartition(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		var mu sync.Mutex
		down := true
		var got, tries seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Key == "held" && down {
				tries.add(string(m.Value))
				return errors.New("the database is down")
			}
			got.add(string(m.Value))
			return nil
		})
		s.produce(t, thing("held", "1"), thing("held", "2"))
		for i := range 20 {
			s.produce(t, thing(fmt.Sprint("other", i), fmt.Sprint("other", i)))
		}
		eventually(t, "five tries", func() bool { return tries.count("1") >= 5 })
		eventually(t, "other partitions go on", func() bool { return len(got.all()) >= 10 })
		if tries.count("2") > 0 || got.count("1")+got.count("2") > 0 {
			t.Errorf("the held message was passed by: tries %v, got %v", tries.all(), got.all())
		}
		mu.Lock()
		down = false
		mu.Unlock()
		eventually(t, "held ones come in order", func() bool {
			v := got.all()
			return len(v) == 22 && slices.Index(v, "1") < slices.Index(v, "2")
		})
	})
}

// letters reads all messages of the dead-letter topic.
func (s setup) letters(t *testing.T) []*kgo.Record {
	t.Helper()
	r, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.Brokers...), kgo.ConsumeTopics(s.cluster.Prefix+kafkax.DeadLetterTopic("readers")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*kgo.Record
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		records := r.PollFetches(ctx).Records()
		cancel()
		if len(records) == 0 {
			return out
		}
		out = append(out, records...)
	}
}

func TestPoisonGoesToTheDeadLettersAndBack(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		var mu sync.Mutex
		mended := false
		var got, tries seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error {
			mu.Lock()
			defer mu.Unlock()
			switch v := string(m.Value); {
			case v == "bad" && !mended:
				tries.add(v)
				return kafkax.Poison(errors.New("cannot be decoded"))
			case v == "panics" && !mended:
				panic("boom")
			}
			if m.Headers["kind"] != "thing" || m.Headers[kafkax.HeaderError] != "" {
				t.Errorf("headers of %s: %v", m.Value, m.Headers)
			}
			got.add(string(m.Value))
			return nil
		})
		s.produce(t, thing("a", "bad"), thing("a", "next"), thing("b", "panics"))
		eventually(t, "the next message", func() bool { return got.count("next") == 1 })
		if n := tries.count("bad"); n != 4 {
			t.Errorf("%d tries in place, want 4", n)
		}
		var dead []*kgo.Record
		eventually(t, "two dead letters", func() bool { dead = s.letters(t); return len(dead) == 2 })
		for _, m := range dead {
			h := map[string]string{}
			for _, one := range m.Headers {
				h[one.Key] = string(one.Value)
			}
			if h[kafkax.HeaderTopic] != "things" || h[kafkax.HeaderPartition] == "" || h[kafkax.HeaderOffset] == "" ||
				h[kafkax.HeaderError] == "" || h["kind"] != "thing" {
				t.Errorf("headers of dead letter %s: %v", m.Value, h)
			}
		}
		mu.Lock()
		mended = true
		mu.Unlock()
		s.redrive(t, 1, 1)
		stray := kafkax.Message{Topic: kafkax.DeadLetterTopic("readers"), Key: "a", Value: []byte("stray")}
		if err := s.writer.Produce(t.Context(), stray); err != nil {
			t.Fatal(err)
		}
		if n, err := kafkax.Redrive(t.Context(), s.settings(), "readers", 0, kafkax.DefaultBatchBytes); n != 1 || err == nil {
			t.Errorf("next to a letter without an origin, %d were sent, want 1 and an error: %v", n, err)
		}
		s.redrive(t, 0, 0)
		eventually(t, "both are handled", func() bool { return got.count("bad") == 1 && got.count("panics") == 1 })
	})
}

// settings connect to the test's brokers without TLS.
func (s setup) settings() kafkax.Settings {
	return kafkax.Settings{Brokers: s.cluster.Brokers, Prefix: s.cluster.Prefix}
}

func (s setup) redrive(t *testing.T, limit, want int) {
	t.Helper()
	n, err := kafkax.Redrive(t.Context(), s.settings(), "readers", limit, kafkax.DefaultBatchBytes)
	if err != nil || n != want {
		t.Fatalf("redrive of %d sent %d, want %d: %v", limit, n, want, err)
	}
}

// failing is a Producer that fails a few times.
type failing struct {
	kafkax.Producer
	mu   sync.Mutex
	left int
}

func (f *failing) Produce(ctx context.Context, msgs ...kafkax.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left >= 0 {
		return errors.New("no broker")
	}
	return f.Producer.Produce(ctx, msgs...)
}

func TestPoisonIsHeldUntilTheDeadLetterIsWritten(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		letters := &failing{Producer: s.writer, left: 2}
		var got seen
		s.consume(t, func(_ context.Context, m kafkax.Message) error {
			if string(m.Value) == "bad" {
				return fmt.Errorf("refused: %w", kafkax.ErrPoison)
			}
			got.add(string(m.Value))
			return nil
		}, func(c *kafkax.Consumer) { c.DeadLetter = letters })
		s.produce(t, thing("a", "bad"), thing("a", "next"))
		eventually(t, "the next message", func() bool { return got.count("next") == 1 })
		n := 0
		eventually(t, "a dead letter", func() bool { n = len(s.letters(t)); return n > 0 })
		if n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
	})
}

func TestPartitionsMoveBetweenMembers(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		var first, second seen
		stop := s.consume(t, func(_ context.Context, m kafkax.Message) error { first.add(string(m.Value)); return nil })
		s.consume(t, func(_ context.Context, m kafkax.Message) error { second.add(string(m.Value)); return nil })
		n := 0
		eventually(t, "both members get messages", func() bool {
			n++
			s.produce(t, thing(fmt.Sprint("k", n), fmt.Sprint(n)))
			return len(first.all()) > 0 && len(second.all()) > 0
		})
		stop()
		for range 20 {
			n++
			s.produce(t, thing(fmt.Sprint("k", n), fmt.Sprint(n)))
		}
		eventually(t, "nothing is lost", func() bool {
			all := append(first.all(), second.all()...)
			slices.Sort(all)
			return len(slices.Compact(all)) == n
		})
	})
}

func TestTraceLineAndLag(t *testing.T) {
	t.Parallel()
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		reg := prometheus.NewRegistry()
		var log bytes.Buffer
		var got seen
		stop := s.consume(t, func(ctx context.Context, _ kafkax.Message) error {
			obs.Add(ctx, slog.String("event", "evt_1"))
			got.add(obs.Traceparent(ctx))
			return nil
		}, func(c *kafkax.Consumer) {
			c.Metrics = reg
			c.Log = slog.New(slog.NewJSONHandler(&log, nil))
		})
		m := thing("a", "1")
		m.Headers["traceparent"] = traceparent
		s.produce(t, m)
		eventually(t, "it has come", func() bool { return got.count(traceparent) == 1 })
		stop()
		for _, want := range []string{`"trace_id":"0af7651916cd43dd8448eb211c80319c"`, `"event":"evt_1"`, `"topic":"things"`, `"group":"readers"`} {
			if !bytes.Contains(log.Bytes(), []byte(want)) {
				t.Errorf("the line lacks %s: %s", want, log.String())
			}
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
		}
		if !names["kafka_consumer_lag"] || !names["kafka_consumer_messages_total"] {
			t.Errorf("metrics: %v", names)
		}
	})
}
