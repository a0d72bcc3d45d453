package api

import (
	"net/url"
	"slices"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

var otherOperations = []operation{
	{pattern: "GET /v1/account", run: getAccount},
	{pattern: "GET /v1/accounts/{id}", run: getAccount},
	{
		pattern: "POST /v1/payment_methods", public: true, run: createMethod,
		params: []string{"type", "card", "us_bank_account", "billing_details", "metadata"},
	},
	{pattern: "GET /v1/payment_methods/{id}", run: get(store.Methods)},
	{pattern: "GET /v1/events", params: names(listing, []string{"type", "types"}), run: listEvents},
	{pattern: "GET /v1/events/{id}", run: get(store.Events)},
	{
		pattern: "POST /v1/webhook_endpoints", run: createEndpoint,
		params: []string{"api_version", "description", "enabled_events", "metadata", "url"},
	},
	{pattern: "GET /v1/webhook_endpoints", params: listing, run: listEndpoints},
	{pattern: "GET /v1/webhook_endpoints/{id}", run: get(store.Endpoints)},
	{pattern: "DELETE /v1/webhook_endpoints/{id}", run: deleteEndpoint},
}

func getAccount(c *call) (any, error) {
	if c.id != "" && c.id != c.Scope.Account {
		return nil, domain.Missing(404, "account", c.id, "account")
	}
	accounts, err := c.Tx.Accounts()
	for _, a := range accounts {
		if a.ID == c.Scope.Account {
			return a.Public(), nil
		}
	}
	return nil, err
}

func createMethod(c *call) (any, error) {
	in := c.methodData(func(name string) string { return name })
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.CreateMethod(in)
}

func listEvents(c *call) (any, error) {
	types := c.form.List("types")
	return c.list(store.Events, source{}, func(o *listed) bool {
		return c.same("type", o.Type) && (len(types) == 0 || slices.Contains(types, o.Type))
	})
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
	if v := f.Or("api_version", domain.APIVersion); v != domain.APIVersion {
		f.Fail("", "api_version", "Invalid API version: %s. The stand-in speaks %s only.", v, domain.APIVersion)
	}
	description, m := f.Text("description"), f.Metadata()
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c.CreateEndpoint(domain.Endpoint{
		URL: address, EnabledEvents: events, Description: description, APIVersion: f.Text("api_version"), Metadata: m.Apply(nil),
	})
}

func listEndpoints(c *call) (any, error) {
	return c.list(store.Endpoints, source{}, func(*listed) bool { return true })
}

func deleteEndpoint(c *call) (any, error) {
	if err := c.DeleteEndpoint(c.id); err != nil {
		return nil, err
	}
	return map[string]any{"id": c.id, "object": "webhook_endpoint", "deleted": true}, nil
}
