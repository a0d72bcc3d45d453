package kafkax

import (
	"context"
	"time"
)

const caughtUpPoll = 100 * time.Millisecond

// CaughtUp reports whether a group has handled all messages that the topics have now. It waits for the group until ctx ends. Messages
// that arrive meanwhile do not count.
func CaughtUp(ctx context.Context, c Cluster, topics []string, group string) (bool, error) {
	client := c.client()
	defer client.close()
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = c.Prefix + topic
	}
	b, err := client.bounds(ctx, names...)
	if err != nil {
		return false, err
	}
	for {
		committed, err := client.committed(ctx, c.Prefix+group, b.ends)
		if err != nil {
			return false, err
		}
		if b.missing(committed) == 0 {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(caughtUpPoll):
		}
	}
}
