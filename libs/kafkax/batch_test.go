package kafkax_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
				if n == 50 {
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
		for k := range keys {
			if alone.count(fmt.Sprintf("k%d=050 apart", k)) != 1 {
				t.Errorf("k%d: the message apart came not once", k)
			}
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

// A reader is not reported as stalled when a broker delays a message for longer than the interval of the check.
func TestHeldBackIsNotStalled(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		var handled atomic.Int64
		var log bytes.Buffer
		stop := s.consume(t, func(context.Context, kafkax.Message) error {
			handled.Add(1)
			return nil
		}, func(c *kafkax.Consumer) {
			c.FetchWait = 11 * time.Second
			c.HandleBatch = func(context.Context, []kafkax.Message) error { return kafkax.ErrSeparate }
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		s.produce(t, thing("k", "alone"))
		eventually(t, "the message", func() bool { return handled.Load() == 1 })
		stop()
		if strings.Contains(log.String(), "reading again") {
			t.Errorf("log: %s", log.String())
		}
	})
}
