package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/peers/public"
)

var errSecret = errors.New("--secret must be whsec_ followed by base64, as created by the platform")

func listenCommand() *cobra.Command {
	var c clientConfig
	var target, secret string
	var types []string
	cmd := &cobra.Command{
		Use: "listen", Short: "Show test mode events as they happen and forward them to a receiver on this machine.", Args: cobra.NoArgs,
		Long: "Show test mode events as they happen, and POST each one to a receiver with the headers of a delivery.\n" +
			"Each event is sent once; failures are shown and not retried. Press Ctrl-C to stop.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := newListener(cmd, target, secret)
			if err != nil {
				return err
			}
			for _, t := range types {
				if err := checkType(t); err != nil {
					return err
				}
			}
			client, err := c.connect()
			if err != nil {
				return err
			}
			return l.follow(cmd.Context(), &public.Follower{Client: client, Types: types})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&target, "forward-to", "", "URL of the receiver (default: events are only shown)")
	cmd.Flags().StringVar(&secret, "secret", "", "secret that signs forwarded events (default a new secret)")
	cmd.Flags().StringSliceVar(&types, "events", nil, "comma-separated list of event types (default all)")
	return cmd
}

// listener prints events and forwards them.
type listener struct {
	out, err io.Writer
	to       *receiver // nil if events are only shown
}

func newListener(cmd *cobra.Command, target, secret string) (*listener, error) {
	l := &listener{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	if target == "" {
		return l, nil
	}
	if secret == "" {
		secret = domain.NewSecret()
	}
	encoded, ok := strings.CutPrefix(secret, domain.SecretPrefix)
	if key, err := base64.StdEncoding.DecodeString(encoded); !ok || err != nil || len(key) == 0 {
		return nil, errSecret
	}
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	if u, err := url.Parse(target); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("--forward-to must be an http or https URL, not %q", target)
	}
	l.to = newReceiver(target, secret)
	return l, nil
}

// follow runs until ctx ends, or until the platform returns an error that a retry cannot resolve.
func (l *listener) follow(ctx context.Context, f *public.Follower) error {
	if l.to != nil {
		l.say(l.out, "forwarding to "+l.to.url+", signed with "+l.to.secret)
	}
	f.Start = func() { l.say(l.out, "listening for events of test mode") }
	f.Notice = func(err error, wait time.Duration) {
		l.say(l.err, fmt.Sprintf("%v; again in %v", err, wait.Round(time.Second)))
	}
	return f.Follow(ctx, func(e public.Event) { l.take(ctx, e) })
}

// take forwards an event and prints it with the result.
func (l *listener) take(ctx context.Context, e public.Event) {
	line := fmt.Sprintf("%s  %-17s  %s", time.Now().UTC().Format(time.RFC3339), e.Type, e.ID)
	if l.to == nil {
		l.say(l.out, line)
		return
	}
	status, took, err := l.to.deliver(ctx, e)
	switch {
	case ctx.Err() != nil: // Ctrl-C
		line += "  not delivered: stopped"
	case err != nil:
		line += fmt.Sprintf("  failed: %v  %d ms", err, took.Milliseconds())
	default:
		line += fmt.Sprintf("  %d  %d ms", status, took.Milliseconds())
	}
	l.say(l.out, line)
}

// say prints a line. It ignores errors, so that a closed terminal does not stop the command.
func (l *listener) say(w io.Writer, line string) {
	_, _ = fmt.Fprintln(w, line)
}
