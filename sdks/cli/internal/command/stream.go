package command

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"holdfast.dev/sdks/cli/internal/follow"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// stream writes events as they happen, until ctx ends: each one as a line of JSON, or in the chosen format.
func (c *call) stream(ctx context.Context, s *profile.Session) error {
	f := &follow.Follower{
		Client: s.Client, Start: func() {},
		Notice: func(err error, wait time.Duration) {
			c.app.note("%s; again in %v", message(err), wait.Round(time.Second))
		},
	}
	for _, i := range c.query {
		if i.param.Name == "type" {
			f.Types = i.given
		}
	}
	for _, i := range c.headers {
		if len(i.given) > 0 { // the only header is the ID of the last event
			f.After = i.given[0]
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := f.Follow(ctx, func(e follow.Event) {
		if err := c.event(ctx, e); err != nil {
			stop(err)
		}
	})
	if cause := context.Cause(ctx); err == nil && cause != nil {
		return cause
	}
	return err
}

// event writes an event.
func (c *call) event(ctx context.Context, e follow.Event) error {
	switch {
	case c.jq != nil:
		return c.jq.Write(ctx, c.app.Out, e.Body)
	case c.format == formatTable:
		return c.app.Out.Text(eventLine(e) + "\n")
	case c.format == formatYAML:
		if err := c.app.Out.Text("---\n"); err != nil {
			return err
		}
		return output.YAML(c.app.Out, e.Body)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, e.Body); err != nil {
		return err
	}
	return c.app.Out.Text(text.String() + "\n")
}
