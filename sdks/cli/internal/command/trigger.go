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

// step is a request that causes an event. {id} in its path is the id of the object that the previous step created.
type step struct {
	method, path string
	body         func(g given) object
	card         string // the payer confirms the intent of the previous step with this test card; "" for a request to the platform
}

type object = map[string]any

// given contains the values that a body can depend on.
type given struct {
	now      time.Time
	last     string // the id of the object that the previous step created
	currency string // of the tenant
}

// fixed returns a function for a body that does not depend on given.
func fixed(body object) func(given) object { return func(given) object { return body } }

// day returns the date of the created objects. They reserve no unit, so they never conflict.
func (g given) day() string { return g.now.AddDate(0, 0, 42).Format(time.DateOnly) }

func (g given) price() object { return object{"amount": 5000, "currency": g.currency} }

func (g given) lines() []object {
	return []object{{"description": "Made by webhooks trigger", "quantity": 1, "unit_amount": g.price()}}
}

var (
	newCustomer    = call("POST /customers", fixed(object{"first_name": "Ada", "last_name": "Trigger", "email": "ada@example.com"}))
	renameCustomer = call("PATCH /customers/{id}", fixed(object{"first_name": "Grace"}))
	newBooking     = call("POST /bookings", func(g given) object { return object{"event_date": g.day()} })
	noteBooking    = call("PATCH /bookings/{id}", fixed(object{"notes": "Changed by webhooks trigger."}))
	cancelBooking  = call("POST /bookings/{id}/cancel", fixed(object{"reason": "webhooks trigger"}))
	newLead        = call("POST /leads", fixed(object{"first_name": "Ada", "last_name": "Trigger"}))
	contactLead    = call("PATCH /leads/{id}", fixed(object{"status": "contacted"}))
	newQuote       = call("POST /quotes", func(g given) object {
		return object{"customer_id": g.last, "event_date": g.day(), "line_items": g.lines()}
	})
	sendQuote   = call("POST /quotes/{id}/send", fixed(object{}))
	acceptQuote = call("POST /quotes/{id}/accept", fixed(object{}))
	newInvoice  = call("POST /invoices", func(g given) object {
		return object{"customer_id": g.last, "line_items": g.lines()}
	})
	openInvoice = call("POST /invoices/{id}/open", fixed(object{}))
	payInvoice  = call("POST /invoices/{id}/record-payment", func(g given) object { return object{"amount": g.price(), "method": "cash"} })
	newIntent   = call("POST /payment-intents", func(g given) object { return object{"booking_id": g.last, "amount_minor": 5000} })
)

// call returns a step that sends a request, such as "POST /bookings", to the platform.
func call(line string, body func(given) object) step {
	method, path, _ := strings.Cut(line, " ")
	return step{method: method, path: path, body: body}
}

// triggers maps each event type to the requests that cause it.
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
	"payment.succeeded": {newBooking, newIntent, {card: goodCard}},
	"payment.failed":    {newBooking, newIntent, {card: declinedCard}},
}

func triggerCommand() *cobra.Command {
	var c clientConfig
	can := strings.Join(slices.Sorted(maps.Keys(triggers)), ", ")
	cmd := &cobra.Command{
		Use: "trigger TYPE", Short: "Trigger a test mode event by creating real objects.", Args: cobra.ExactArgs(1),
		Long: "Trigger a test mode event by creating real objects through the public API: " + can + ". Payments are confirmed at STRIPE_URL with STRIPE_PUBLISHABLE_KEY and a test card.",
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := stepsTo(args[0])
			if err != nil {
				return err
			}
			client, err := c.connect()
			if err != nil {
				return err
			}
			payer, err := cards(steps)
			if err != nil {
				return err
			}
			return trigger(cmd.Context(), client, payer, steps, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

func stepsTo(name string) ([]step, error) {
	if err := checkType(name); err != nil {
		return nil, err
	}
	return triggers[name], nil
}

// trigger sends the requests and prints each request: its method, path and the id of the object.
func trigger(ctx context.Context, client *public.Client, payer cardConfig, steps []step, out io.Writer) error {
	var tenant struct{ Currency string }
	if err := client.Call(ctx, http.MethodGet, "/tenant", nil, &tenant); err != nil {
		return fmt.Errorf("GET /tenant: %w", err)
	}
	var created struct {
		ID     string `json:"id"`
		Secret string `json:"client_secret"`
	}
	for _, s := range steps {
		if s.card != "" {
			if err := payer.confirm(ctx, created.ID, created.Secret, s.card); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "POST %s  %s\n", confirmPath(created.ID), created.ID); err != nil {
				return err
			}
			continue
		}
		path := strings.ReplaceAll(s.path, "{id}", created.ID)
		if err := client.Call(ctx, s.method, path, s.body(given{time.Now(), created.ID, tenant.Currency}), &created); err != nil {
			return fmt.Errorf("%s %s: %w", s.method, path, err)
		}
		if _, err := fmt.Fprintf(out, "%s %s  %s\n", s.method, path, created.ID); err != nil {
			return err
		}
	}
	return nil
}
