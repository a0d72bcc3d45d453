package kafkax_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
)

// A message that Filter leaves out is committed without being handled, alone and in a batch. While Filter fails, no message is handled.
func TestFilter(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		s := prepare(t, brokers)
		const each = 50
		for n := range each {
			s.produce(t, thing(fmt.Sprint("k", n%4), "handled"), thing(fmt.Sprint("k", n%4), "left out"))
		}
		var got seen
		var failures atomic.Int64
		filter := func(_ context.Context, list []kafkax.Message) ([]kafkax.Message, error) {
			if failures.Add(1) < 5 {
				return nil, errors.New("not known yet")
			}
			return slices.DeleteFunc(slices.Clone(list), func(m kafkax.Message) bool { return string(m.Value) == "left out" }), nil
		}
		handle := func(_ context.Context, m kafkax.Message) error { got.add(string(m.Value)); return nil }
		for name, change := range map[string]func(c *kafkax.Consumer){
			"alone": func(c *kafkax.Consumer) { c.Filter = filter },
			"batch": func(c *kafkax.Consumer) {
				c.Filter = filter
				c.HandleBatch = func(_ context.Context, list []kafkax.Message) error {
					for _, m := range list {
						got.add(string(m.Value))
					}
					return nil
				}
			},
		} {
			before := got.count("handled")
			stop := s.consume(t, handle, change)
			s.produce(t, thing("k9", "handled"))
			eventually(t, name+": all have come", func() bool { return got.count("handled") > before && got.count("handled") >= each+1 })
			stop()
		}
		if n := got.count("left out"); n != 0 {
			t.Errorf("%d messages that are left out were handled", n)
		}
		if n := got.count("handled"); n != each+2 {
			t.Errorf("%d messages, want %d", n, each+2)
		}
	})
}
