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
	body         func(g given) object
}

type object = map[string]any

// given is what a body may depend on.
type given struct {
	now      time.Time
	last     string // the id that the step before has made
	currency string // of the tenant
}

// fixed is the body of a step that depends on nothing.
func fixed(body object) func(given) object { return func(given) object { return body } }

// day is the date of what is made: it claims no unit, so it never conflicts.
func (g given) day() string { return g.now.AddDate(0, 0, 42).Format(time.DateOnly) }

func (g given) price() object { return object{"amount": 5000, "currency": g.currency} }

func (g given) lines() []object {
	return []object{{"description": "Made by webhooks trigger", "quantity": 1, "unit_amount": g.price()}}
}

var (
	newCustomer    = step{http.MethodPost, "/customers", fixed(object{"first_name": "Ada", "last_name": "Trigger", "email": "ada@example.com"})}
	renameCustomer = step{http.MethodPatch, "/customers/{id}", fixed(object{"first_name": "Grace"})}
	newBooking     = step{http.MethodPost, "/bookings", func(g given) object { return object{"event_date": g.day()} }}
	noteBooking    = step{http.MethodPatch, "/bookings/{id}", fixed(object{"notes": "Changed by webhooks trigger."})}
	cancelBooking  = step{http.MethodPost, "/bookings/{id}/cancel", fixed(object{"reason": "webhooks trigger"})}
	newLead        = step{http.MethodPost, "/leads", fixed(object{"first_name": "Ada", "last_name": "Trigger"})}
	contactLead    = step{http.MethodPatch, "/leads/{id}", fixed(object{"status": "contacted"})}
	newQuote       = step{http.MethodPost, "/quotes", func(g given) object {
		return object{"customer_id": g.last, "event_date": g.day(), "line_items": g.lines()}
	}}
	sendQuote   = step{http.MethodPost, "/quotes/{id}/send", fixed(object{})}
	acceptQuote = step{http.MethodPost, "/quotes/{id}/accept", fixed(object{})}
	newInvoice  = step{http.MethodPost, "/invoices", func(g given) object {
		return object{"customer_id": g.last, "line_items": g.lines()}
	}}
	openInvoice = step{http.MethodPost, "/invoices/{id}/open", fixed(object{})}
	payInvoice  = step{http.MethodPost, "/invoices/{id}/record-payment", func(g given) object { return object{"amount": g.price(), "method": "cash"} }}
)

// triggers maps the event types that the API can cause to the requests that cause them.
var triggers = map[string][]step{
	"customer.created":  {newCustomer},
	"customer.updated":  {newCustomer, renameCustomer},
	"booking.created":   {newBooking},
	"booking.updated":   {newBooking, noteBooking},
	"booking.cancelled": {newBooking, cancelBooking},
	"lead.created":      {newLead},
	"lead.updated":      {newLead, contactLead},
	"quote.created":     {newCustomer, newQuote},
	"quote.accepted":    {newCustomer, newQuote, sendQuote, acceptQuote},
	"invoice.created":   {newCustomer, newInvoice},
	"invoice.paid":      {newCustomer, newInvoice, openInvoice, payInvoice},
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
	var tenant struct{ Currency string }
	if err := client.Call(ctx, http.MethodGet, "/tenant", nil, &tenant); err != nil {
		return fmt.Errorf("GET /tenant: %w", err)
	}
	var made struct{ ID string }
	for _, s := range steps {
		path := strings.ReplaceAll(s.path, "{id}", made.ID)
		if err := client.Call(ctx, s.method, path, s.body(given{time.Now(), made.ID, tenant.Currency}), &made); err != nil {
			return fmt.Errorf("%s %s: %w", s.method, path, err)
		}
		if _, err := fmt.Fprintf(out, "%s %s  %s\n", s.method, path, made.ID); err != nil {
			return err
		}
	}
	return nil
}
