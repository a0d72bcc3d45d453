package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/services/webhooks/internal/peers/public"
)

// step is a request that causes an event. {id} in its path is the id that the step before has made.
type step struct {
	method, path string
	body         func(now time.Time) map[string]any
}

var (
	newCustomer = step{http.MethodPost, "/customers", func(time.Time) map[string]any {
		return map[string]any{"first_name": "Ada", "last_name": "Trigger", "email": "ada@example.com"}
	}}
	renameCustomer = step{http.MethodPatch, "/customers/{id}", func(time.Time) map[string]any {
		return map[string]any{"first_name": "Grace"}
	}}
	newBooking = step{http.MethodPost, "/bookings", func(now time.Time) map[string]any {
		return map[string]any{"event_date": now.AddDate(0, 0, 42).Format(time.DateOnly)} // claims no unit, so it never conflicts
	}}
	noteBooking = step{http.MethodPatch, "/bookings/{id}", func(time.Time) map[string]any {
		return map[string]any{"notes": "Changed by webhooks trigger."}
	}}
	cancelBooking = step{http.MethodPost, "/bookings/{id}/cancel", func(time.Time) map[string]any {
		return map[string]any{"reason": "webhooks trigger"}
	}}
)

// triggers maps the event types that the API can cause to the requests that cause them.
var triggers = map[string][]step{
	"customer.created":  {newCustomer},
	"customer.updated":  {newCustomer, renameCustomer},
	"booking.created":   {newBooking},
	"booking.updated":   {newBooking, noteBooking},
	"booking.cancelled": {newBooking, cancelBooking},
}

func triggerCommand() *cobra.Command {
	var c clientConfig
	can := strings.Join(slices.Sorted(maps.Keys(triggers)), ", ")
	cmd := &cobra.Command{
		Use: "trigger TYPE", Short: "Cause an event of test mode by making the real objects.", Args: cobra.ExactArgs(1),
		Long: "Cause an event of test mode by making the real objects through the public API: " + can + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := stepsTo(args[0])
			if err != nil {
				return err
			}
			client, err := c.connect()
			if err != nil {
				return err
			}
			return trigger(cmd.Context(), client, steps, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

func stepsTo(name string) ([]step, error) {
	if err := checkType(name); err != nil {
		return nil, err
	}
	steps, ok := triggers[name]
	if !ok {
		return nil, fmt.Errorf("nothing in the API causes %s yet; POST /webhook-endpoints/{id}/test sends a sample of it", name)
	}
	return steps, nil
}

// trigger sends the requests and shows each: its method, path and the id of the object.
func trigger(ctx context.Context, client *public.Client, steps []step, out io.Writer) error {
	var made struct{ ID string }
	for _, s := range steps {
		path := strings.ReplaceAll(s.path, "{id}", made.ID)
		if err := client.Call(ctx, s.method, path, s.body(time.Now()), &made); err != nil {
			return fmt.Errorf("%s %s: %w", s.method, path, err)
		}
		if _, err := fmt.Fprintf(out, "%s %s  %s\n", s.method, path, made.ID); err != nil {
			return err
		}
	}
	return nil
}
