package kafkax_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
)

// Waiting messages are handled in batches, in order per key. A failed batch has no effect and is handled message by message. A
// restarted consumer begins after the handled messages.
func TestBatches(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const keys, each = 8, 100
		var msgs []kafkax.Message
		for n := range each {
			for k := range keys {
				value := fmt.Sprintf("%03d", n)
				if n == 50 && k == 0 { // one message, so that only one batch fails, wherever batches begin
					value += " apart"
				}
				msgs = append(msgs, thing(fmt.Sprint("k", k), value))
			}
		}
		s.produce(t, msgs...)
		var alone, batched seen
		var mu sync.Mutex
		batches := 0
		handle := func(_ context.Context, m kafkax.Message) error { alone.add(m.Key + "=" + string(m.Value)); return nil }
		batch := func(_ context.Context, list []kafkax.Message) error {
			if slices.ContainsFunc(list, func(m kafkax.Message) bool { return strings.HasSuffix(string(m.Value), "apart") }) {
				return errors.New("one by one")
			}
			mu.Lock()
			batches++
			mu.Unlock()
			for _, m := range list {
				batched.add(m.Key + "=" + string(m.Value))
			}
			return nil
		}
		grouped := func(c *kafkax.Consumer) { c.HandleBatch = batch }
		stop := s.consume(t, handle, grouped)
		count := func() int { return len(alone.all()) + len(batched.all()) }
		eventually(t, "all have come", func() bool { return count() >= keys*each })
		stop()
		byKey := map[string][]string{}
		for _, v := range append(batched.all(), alone.all()...) {
			byKey[v[:2]] = append(byKey[v[:2]], v)
		}
		for key, values := range byKey {
			slices.Sort(values)
			if len(slices.Compact(values)) != each || len(values) != each {
				t.Errorf("%s: %d messages", key, len(values))
			}
		}
		mu.Lock()
		if n := len(batched.all()); batches == 0 || n/batches < 2 {
			t.Errorf("%d messages in %d batches", n, batches)
		}
		mu.Unlock()
		if alone.count("k0=050 apart") != 1 {
			t.Error("the message apart came not once")
		}
		before := count()
		s.consume(t, handle, grouped)
		s.produce(t, thing("k0", "last"))
		eventually(t, "the last one", func() bool { return alone.count("k0=last")+batched.count("k0=last") == 1 })
		if count() != before+1 {
			t.Errorf("%d came again", count()-before-1)
		}
	})
}

// With FetchWait, a broker delays messages until they arrive in a batch. A single message also arrives.
func TestHeldBackMessagesArriveInBatches(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		var calls, handled atomic.Int64
		s.consume(t, func(context.Context, kafkax.Message) error {
			calls.Add(1)
			handled.Add(1)
			return nil
		}, func(c *kafkax.Consumer) {
			c.FetchWait = 2 * time.Second
			c.HandleBatch = func(_ context.Context, list []kafkax.Message) error {
				calls.Add(1)
				handled.Add(int64(len(list)))
				return nil
			}
		})
		s.produce(t, thing("k", "alone"))
		eventually(t, "a single message", func() bool { return handled.Load() == 1 })
		const messages = 40
		for n := range messages {
			s.produce(t, thing("k", fmt.Sprint(n)))
		}
		eventually(t, "all of them", func() bool { return handled.Load() == 1+messages })
		if n := calls.Load(); n > messages/2 {
			t.Errorf("%d calls for %d messages", n, 1+messages)
		}
	})
}

// A batch spans partitions: one call handles what several of them have.
func TestBatchesSpanPartitions(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const messages = 64
		var msgs []kafkax.Message
		for n := range messages {
			msgs = append(msgs, thing(fmt.Sprint("k", n), "v"))
		}
		s.produce(t, msgs...)
		var calls, handled atomic.Int64
		s.consume(t, func(context.Context, kafkax.Message) error {
			calls.Add(1)
			handled.Add(1)
			return nil
		}, func(c *kafkax.Consumer) {
			c.HandleBatch = func(_ context.Context, list []kafkax.Message) error {
				calls.Add(1)
				handled.Add(int64(len(list)))
				return nil
			}
		})
		eventually(t, "all of them", func() bool { return handled.Load() == messages })
		if n := calls.Load(); n > 3 { // the messages of four partitions in one response, or in two
			t.Errorf("%d calls", n)
		}
	})
}

// A batch that does not end delays the other partitions only for a limited time. Its partitions are then handled separately, and the
// one that is blocked blocks no other.
func TestABlockedBatchDelaysOthersOnlyBriefly(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		blocks := func(list []kafkax.Message) bool {
			return slices.ContainsFunc(list, func(m kafkax.Message) bool { return string(m.Value) == "blocks" })
		}
		var got seen
		batch := func(ctx context.Context, list []kafkax.Message) error {
			if blocks(list) {
				<-ctx.Done()
				return ctx.Err()
			}
			for _, m := range list {
				got.add(m.Key)
			}
			return nil
		}
		s.consume(t, func(ctx context.Context, m kafkax.Message) error { return batch(ctx, []kafkax.Message{m}) },
			func(c *kafkax.Consumer) { c.HandleBatch = batch })
		s.produce(t, thing("held", "blocks"))
		others := func(name string) {
			for n := range 16 {
				s.produce(t, thing(fmt.Sprint(name, n), "v"))
			}
		}
		others("first")
		eventually(t, "other partitions go on", func() bool { return len(got.all()) >= 8 })
		others("second")
		eventually(t, "and go on", func() bool { return len(got.all()) >= 16 })
	})
}
