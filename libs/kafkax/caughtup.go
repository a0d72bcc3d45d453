package kafkax

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const caughtUpPoll = 100 * time.Millisecond

// CaughtUp reports whether a group has handled all messages that the topics have now. It waits for the group until ctx ends. Messages
// that arrive meanwhile do not count.
func CaughtUp(ctx context.Context, c Cluster, topics []string, group string) (bool, error) {
	admin, release, err := c.admin()
	if err != nil {
		return false, err
	}
	defer release()
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = c.Prefix + topic
	}
	starts, err := listed(admin.ListStartOffsets(ctx, names...))
	if err != nil {
		return false, err
	}
	ends, err := listed(admin.ListEndOffsets(ctx, names...))
	if err != nil {
		return false, err
	}
	for {
		done, err := admin.FetchOffsets(ctx, c.Prefix+group)
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return false, err
		}
		if missing(starts, ends, done) == 0 {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(caughtUpPoll):
		}
	}
}

// missing returns the number of messages between the offsets of a group and the ends. Messages that retention has deleted do not count.
func missing(starts, ends kadm.ListedOffsets, done kadm.OffsetResponses) (n int64) {
	ends.Each(func(end kadm.ListedOffset) {
		next := int64(0)
		if start, ok := starts.Lookup(end.Topic, end.Partition); ok {
			next = start.Offset
		}
		if at, ok := done.Lookup(end.Topic, end.Partition); ok {
			next = max(next, at.At)
		}
		n += max(0, end.Offset-next)
	})
	return n
}
