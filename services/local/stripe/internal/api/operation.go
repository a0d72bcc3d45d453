package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// operation is one operation of the API.
type operation struct {
	pattern string   // of http.ServeMux
	params  []string // names outside brackets, in addition to expand
	public  bool     // a publishable key can call it
	run     func(*call) (any, error)
}

func (o *operation) writes() bool { return !strings.HasPrefix(o.pattern, http.MethodGet) }

// ofIntent are the parameters of lists that can be limited to one intent.
var ofIntent = append(slices.Clone(listing), "payment_intent")

var operations = []operation{
	{pattern: "GET /v1/account", run: getAccount},
	{
		pattern: "POST /v1/payment_intents", run: createIntent,
		params: []string{"amount", "automatic_payment_methods", "capture_method", "currency", "description", "metadata", "receipt_email"},
	},
	{pattern: "GET /v1/payment_intents", params: listing, run: list(store.Intents)},
	{pattern: "GET /v1/payment_intents/{id}", run: get(store.Intents)},
	{
		pattern: "POST /v1/payment_intents/{id}/confirm", public: true, run: confirmIntent,
		params: []string{"authentication_outcome", "client_secret", "payment_method", "payment_method_data", "return_url"},
	},
	{pattern: "POST /v1/payment_intents/{id}/capture", params: []string{"amount_to_capture"}, run: captureIntent},
	{pattern: "POST /v1/payment_intents/{id}/cancel", run: func(c *call) (any, error) { return c.CancelIntent(c.id) }},
	{pattern: "GET /v1/charges", params: ofIntent, run: list(store.Charges)},
	{pattern: "POST /v1/refunds", params: []string{"amount", "payment_intent", "reason", "metadata"}, run: createRefund},
	{pattern: "GET /v1/refunds", params: ofIntent, run: list(store.Refunds)},
	{pattern: "GET /v1/refunds/{id}", run: get(store.Refunds)},
	{pattern: "GET /v1/disputes", params: ofIntent, run: list(store.Disputes)},
	{pattern: "GET /v1/disputes/{id}", run: get(store.Disputes)},
	{pattern: "GET /v1/events", params: append(slices.Clone(listing), "types"), run: list(store.Events)},
	{pattern: "POST /v1/webhook_endpoints", params: []string{"enabled_events", "url"}, run: createEndpoint},
}

func getAccount(c *call) (any, error) {
	accounts, err := c.Tx.Accounts()
	for _, a := range accounts {
		if a.ID == c.Scope.Account {
			return a.Public(), nil
		}
	}
	return nil, err
}

func createRefund(c *call) (any, error) {
	f := c.form
	in := app.RefundInput{
		PaymentIntent: f.Required("payment_intent"), Amount: f.Positive("amount"), Reason: f.OneOf("reason", domain.RefundReasons),
		Metadata: f.Metadata(),
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c.CreateRefund(in)
}

func createEndpoint(c *call) (any, error) {
	f := c.form
	address := f.Required("url")
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		f.Fail("url_invalid", "url", "Invalid URL: An explicit scheme (such as https) must be provided.")
	}
	events := f.List("enabled_events")
	if len(events) == 0 {
		f.Fail("parameter_missing", "enabled_events", "Missing required param: enabled_events.")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c.CreateEndpoint(address, events)
}
