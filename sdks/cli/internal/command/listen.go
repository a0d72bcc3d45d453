package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/delivery"
	"holdfast.dev/sdks/cli/internal/follow"
	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/profile"
)

var errLive = errors.New("this command is for test mode: use a profile or a key of test mode")

// target are the flags of a receiver.
type target struct{ url, secret string }

func (t *target) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.url, "forward-to", "", "`URL` of the receiver")
	cmd.Flags().StringVar(&t.secret, "secret", "", "`secret` that signs forwarded events (default a new one)")
}

// receiver returns the receiver, or nil if the user names none.
func (t *target) receiver() (*delivery.Receiver, error) {
	if t.url == "" {
		return nil, nil //nolint:nilnil // no receiver
	}
	r, err := delivery.New(t.url, t.secret)
	return r, usage(err)
}

// testSession opens a session of test mode.
func (a *App) testSession(ctx context.Context) (*profile.Session, error) {
	s, err := a.session(ctx)
	if err == nil && s.Profile.Mode != profile.Test {
		err = errLive
	}
	return s, err
}

func (a *App) listen() *cobra.Command {
	var to target
	var types []string
	cmd := &cobra.Command{
		Use: "listen", Short: "Show test mode events as they happen, and forward them to a receiver on this machine.",
		Long: "Show test mode events as they happen, and POST each one to a receiver with the headers of a delivery. " +
			"Each event is sent once; failures are shown and not retried. Press Ctrl-C to stop.",
		Example: "  holdfast listen --forward-to http://localhost:3000/hooks",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			receiver, err := to.receiver()
			if err != nil {
				return err
			}
			for _, t := range types {
				if err := checkType(t); err != nil {
					return err
				}
			}
			s, err := a.testSession(ctx)
			if err != nil {
				return err
			}
			l := &listener{app: a, to: receiver}
			return l.follow(ctx, &follow.Follower{Client: s.Client, Types: types})
		},
	}
	to.flags(cmd)
	cmd.Flags().StringSliceVar(&types, "events", nil, "`types` of events, separated by commas (default all)")
	_ = cmd.RegisterFlagCompletionFunc("events", cobra.FixedCompletions(operations.EventTypes, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// checkType returns an error that suggests the similar event types, or else lists all, if name is not one of them.
func checkType(name string) error {
	if slices.Contains(operations.EventTypes, name) {
		return nil
	}
	if similar := suggest(name, operations.EventTypes); similar != "" {
		return usagef("%q is not an event type%s", name, similar)
	}
	return usagef("%q is not an event type; the types are %s", name, strings.Join(operations.EventTypes, ", "))
}

// listener prints events and forwards them.
type listener struct {
	app *App
	to  *delivery.Receiver // nil if events are only shown
}

// follow runs until ctx ends, or until the platform returns an error that a retry cannot resolve.
func (l *listener) follow(ctx context.Context, f *follow.Follower) error {
	if l.to != nil {
		l.say("forwarding to " + l.to.URL + ", signed with " + l.to.Secret)
	}
	f.Start = func() { l.say("listening for events of test mode") }
	f.Notice = func(err error, wait time.Duration) {
		l.app.note("%s; again in %v", message(err), wait.Round(time.Second))
	}
	return f.Follow(ctx, func(e follow.Event) { l.take(ctx, e) })
}

// message returns the text of an error in one line, without the parts for programs.
func message(err error) string {
	if refused := (*holdfast.Error)(nil); errors.As(err, &refused) {
		return refused.Message
	}
	return err.Error()
}

// take forwards an event and prints it with the result.
func (l *listener) take(ctx context.Context, e follow.Event) {
	line := eventLine(e)
	if l.to != nil {
		line += "  " + attempt(ctx, l.to, e)
	}
	l.say(line)
}

// eventLine returns an event in one line.
func eventLine(e follow.Event) string {
	return fmt.Sprintf("%s  %-17s  %s", time.Now().UTC().Format(time.RFC3339), e.Type, e.ID)
}

// attempt forwards an event, and returns the result for people.
func attempt(ctx context.Context, to *delivery.Receiver, e follow.Event) string {
	status, took, err := to.Deliver(ctx, e)
	switch {
	case ctx.Err() != nil: // Ctrl-C
		return "not delivered: stopped"
	case err != nil:
		return fmt.Sprintf("failed: %v  %d ms", err, took.Milliseconds())
	}
	return fmt.Sprintf("%d  %d ms", status, took.Milliseconds())
}

// say prints a line. It ignores errors, so that a closed terminal does not stop the command.
func (l *listener) say(line string) { _ = l.app.Out.Text(line + "\n") }
