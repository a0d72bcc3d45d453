package kafkax

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// topicRecorder records the topics of produced messages.
type topicRecorder struct{ topics []string }

func (l *topicRecorder) Produce(_ context.Context, msgs ...Message) error {
	for _, m := range msgs {
		l.topics = append(l.topics, m.Topic)
	}
	return nil
}

// A poison message blocks its partition for 2 s, by a clock that counts only the pauses.
func TestPoisonHoldsItsPartitionForTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		var letters topicRecorder
		start := time.Now()
		c := &Consumer{Cluster: Cluster{Prefix: "test."}, Group: "readers", DeadLetter: &letters, Log: slog.New(slog.DiscardHandler)}
		c.Handle = func(context.Context, Message) error {
			tries = append(tries, time.Since(start))
			return Poison(errors.New("cannot be decoded"))
		}
		if err := c.register(); err != nil {
			t.Fatal(err)
		}
		p := newPartition(newMember(c), place{topic: "test.things"}, 0)
		p.blocked = make(chan struct{})
		if !p.process(t.Context(), &record{place: place{topic: "test.things"}, value: []byte("bad")}) {
			t.Error("the message was not brought to its end")
		}
		want := []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}
		if took := time.Since(start); !slices.Equal(tries, want) || took != 2*time.Second {
			t.Errorf("tries at %v and %v in all, want them at %v", tries, took, want)
		}
		if !slices.Equal(letters.topics, []string{"readers.dlq"}) {
			t.Errorf("dead letters to %v", letters.topics)
		}
	})
}

// A batch whose handler requests its messages one by one is not logged as a failure. A batch that fails is.
func TestSeparateBatchIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want string
	}{{ErrSeparate, `"level":"INFO"`}, {errors.New("away"), `"level":"ERROR"`}} {
		var log bytes.Buffer
		c := &Consumer{Group: "readers", Log: slog.New(slog.NewJSONHandler(&log, nil))}
		if err := c.register(); err != nil {
			t.Fatal(err)
		}
		c.HandleBatch = func(context.Context, []Message) error { return tc.err }
		if c.handleBatch(t.Context(), []*record{{place: place{topic: "things"}}, {place: place{topic: "things"}}}) {
			t.Errorf("%v: the batch counts as handled", tc.err)
		}
		if !strings.Contains(log.String(), tc.want) {
			t.Errorf("%v: log %s", tc.err, log.String())
		}
	}
}
