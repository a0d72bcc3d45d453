package api

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

const (
	defaultLimit = 10
	maxLimit     = 100
)

// List is Stripe's list object.
type List struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	HasMore bool              `json:"has_more"`
	URL     string            `json:"url"`
}

// listed contains the fields by which lists are filtered.
type listed struct {
	Created       int64  `json:"created"`
	Customer      string `json:"customer"`
	PaymentIntent string `json:"payment_intent"`
	Charge        string `json:"charge"`
	Currency      string `json:"currency"`
	Source        string `json:"source"`
	Type          string `json:"type"`
}

// source is the index that a list reads. The zero source lists all objects of the kind.
type source struct{ name, value string }

// same reports whether the parameter is missing or equal to the value.
func (c *call) same(param, value string) bool {
	text := c.form.Text(param)
	return text == nil || *text == value
}

// bounds are the bounds of created.
type bounds struct{ low, high int64 }

func (c *call) bounds() bounds {
	b := bounds{low: 0, high: 1<<62 - 1}
	if !c.form.Nested("created") {
		if n := c.form.Int("created"); n != nil {
			b = bounds{*n, *n}
		}
		return b
	}
	for name, set := range map[string]func(int64){
		"gt": func(n int64) { b.low = max(b.low, n+1) }, "gte": func(n int64) { b.low = max(b.low, n) },
		"lt": func(n int64) { b.high = min(b.high, n-1) }, "lte": func(n int64) { b.high = min(b.high, n) },
	} {
		if n := c.form.Int("created[" + name + "]"); n != nil {
			set(*n)
		}
	}
	return b
}

func (c *call) limit() int {
	n := c.form.Positive("limit")
	switch {
	case n == nil:
		return defaultLimit
	case *n > maxLimit:
		c.form.Fail("parameter_invalid_integer", "limit", "This value must be less than or equal to %d (it currently is '%d').", maxLimit, *n)
	}
	return int(*n)
}

// list returns a page of the matching objects.
func (c *call) list(kind store.Kind, from source, match func(*listed) bool) (any, error) {
	limit, created := c.limit(), c.bounds()
	after, before, err := c.cursors(kind)
	if err != nil {
		return nil, err
	}
	page := &List{Object: "list", Data: []json.RawMessage{}, URL: c.path}
	for id, text := range c.walk(kind, from, after, before) {
		var o listed
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, err
		}
		if o.Created < created.low && before == "" && kind != store.Events { // ids sort by time, but an event can contain a different time
			break
		}
		if o.Created < created.low || o.Created > created.high || !match(&o) {
			continue
		}
		if page.HasMore = len(page.Data) == limit; page.HasMore {
			break
		}
		shown, err := c.listedForm(kind, id, text)
		if err != nil {
			return nil, err
		}
		page.Data = append(page.Data, shown)
	}
	if before != "" {
		slices.Reverse(page.Data)
	}
	return page, nil
}

// cursors returns the id after which the page begins, or the id before which it ends.
func (c *call) cursors(kind store.Kind) (after, before string, err error) {
	after, before = c.form.Or("starting_after", ""), c.form.Or("ending_before", "")
	if after != "" && before != "" {
		c.form.Fail("", "", "You may only specify one of these parameters: starting_after, ending_before.")
	}
	if err := c.form.Err(); err != nil {
		return "", "", err
	}
	for param, id := range map[string]string{"starting_after": after, "ending_before": before} {
		if id != "" && c.Tx.Raw(c.Scope, kind, id) == nil {
			return "", "", domain.Missing(http.StatusBadRequest, objectNames[kind], id, param)
		}
	}
	return after, before, nil
}

// listedForm returns the stored JSON without internal fields.
func (c *call) listedForm(kind store.Kind, id string, text []byte) (json.RawMessage, error) {
	if kind != store.Endpoints && kind != store.Methods && kind != store.Events {
		return slices.Clone(text), nil
	}
	object, err := c.load(kind, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// walk lists ids and objects, the newest first, or the oldest first if before is given.
func (c *call) walk(kind store.Kind, from source, after, before string) iter.Seq2[string, []byte] {
	switch {
	case before != "":
		return c.Tx.Oldest(c.Scope, kind, before)
	case from.name == "":
		return c.Tx.Newest(c.Scope, kind, after)
	}
	return func(yield func(string, []byte) bool) {
		for id := range c.Tx.Indexed(c.Scope, from.name, from.value, after) {
			if !yield(id, c.Tx.Raw(c.Scope, kind, id)) {
				return
			}
		}
	}
}

// byIndex returns the index of the first given parameter.
func (c *call) byIndex(indexes map[string]string) source {
	for param, name := range indexes {
		if text := c.form.Or(param, ""); text != "" {
			return source{name, text}
		}
	}
	return source{}
}

var objectNames = map[store.Kind]string{
	store.Intents: "payment_intent", store.Charges: "charge", store.Refunds: "refund", store.Disputes: "dispute",
	store.Movements: "balance_transaction", store.Methods: "PaymentMethod", store.Events: "event", store.Endpoints: "webhook_endpoint",
}
