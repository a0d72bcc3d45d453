package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/profile"
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
	return []object{{"description": "Made by holdfast trigger", "quantity": 1, "unit_amount": g.price()}}
}

var (
	newCustomer    = send("POST /customers", fixed(object{"first_name": "Ada", "last_name": "Trigger", "email": "ada@example.com"}))
	renameCustomer = send("PATCH /customers/{id}", fixed(object{"first_name": "Grace"}))
	newBooking     = send("POST /bookings", func(g given) object { return object{"event_date": g.day()} })
	noteBooking    = send("PATCH /bookings/{id}", fixed(object{"notes": "Changed by holdfast trigger."}))
	cancelBooking  = send("POST /bookings/{id}/cancel", fixed(object{"reason": "holdfast trigger"}))
	newLead        = send("POST /leads", fixed(object{"first_name": "Ada", "last_name": "Trigger"}))
	contactLead    = send("PATCH /leads/{id}", fixed(object{"status": "contacted"}))
	newQuote       = send("POST /quotes", func(g given) object {
		return object{"customer_id": g.last, "event_date": g.day(), "line_items": g.lines()}
	})
	sendQuote   = send("POST /quotes/{id}/send", fixed(object{}))
	acceptQuote = send("POST /quotes/{id}/accept", fixed(object{}))
	newInvoice  = send("POST /invoices", func(g given) object {
		return object{"customer_id": g.last, "line_items": g.lines()}
	})
	openInvoice = send("POST /invoices/{id}/open", fixed(object{}))
	payInvoice  = send("POST /invoices/{id}/record-payment", func(g given) object { return object{"amount": g.price(), "method": "cash"} })
	newIntent   = send("POST /payment-intents", func(g given) object { return object{"booking_id": g.last, "amount_minor": 5000} })
)

// send returns a step that sends a request, such as "POST /bookings", to the platform.
func send(line string, body func(given) object) step {
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

func (a *App) trigger() *cobra.Command {
	c := cardConfig{}
	cmd := &cobra.Command{
		Use: "trigger TYPE", Short: "Trigger a test mode event by creating real objects.",
		Long: "Trigger a test mode event by creating real objects through the public API: " + strings.Join(operations.EventTypes, ", ") + ".\n\n" +
			"Payments are confirmed with a test card at STRIPE_URL with the key STRIPE_PUBLISHABLE_KEY.",
		ValidArgs: operations.EventTypes,
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := stepsTo(args[0])
			if err != nil {
				return err
			}
			s, err := a.testSession(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.check(steps); err != nil {
				return err
			}
			return a.runTrigger(cmd.Context(), s, c, steps)
		},
	}
	cmd.Flags().StringVar(&c.url, "stripe-url", cmp.Or(os.Getenv("STRIPE_URL"), "https://api.stripe.com"), "`URL` of Stripe's API, without /v1 (default STRIPE_URL, otherwise Stripe's)")
	cmd.Flags().StringVar(&c.key, "stripe-key", os.Getenv("STRIPE_PUBLISHABLE_KEY"), "publishable `key` of the operator's Stripe account, in test mode (default STRIPE_PUBLISHABLE_KEY)")
	for _, name := range []string{"stripe-url", "stripe-key"} {
		cmd.Flags().Lookup(name).DefValue = "" // the help names the variable, not its value
	}
	return cmd
}

func stepsTo(name string) ([]step, error) {
	if err := checkType(name); err != nil {
		return nil, err
	}
	return triggers[name], nil
}

// runTrigger sends the requests and prints each request: its method, path and the id of the object.
func (a *App) runTrigger(ctx context.Context, s *profile.Session, payer cardConfig, steps []step) error {
	tenant, err := s.Tenant.Get(ctx)
	if err != nil {
		return err
	}
	var created struct {
		ID     string `json:"id"`
		Secret string `json:"client_secret"`
	}
	for _, step := range steps {
		line := "POST " + confirmPath(created.ID)
		if step.card != "" {
			err = payer.confirm(ctx, created.ID, created.Secret, step.card)
		} else {
			path := strings.ReplaceAll(step.path, "{id}", created.ID)
			line = step.method + " " + path
			err = change(ctx, s, step.method, path, step.body(given{time.Now(), created.ID, tenant.Currency}), &created)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if err := a.Out.Text(line + "  " + created.ID + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// change sends a write, and reads the object of the response.
func change(ctx context.Context, s *profile.Session, method, path string, body object, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	response, err := s.Do(ctx, holdfast.Request{Method: method, Path: path, Body: text})
	if err != nil {
		return err
	}
	return json.Unmarshal(response, to)
}
