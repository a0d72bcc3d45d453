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

// listing are the parameters of every list. The only bound of created is created[gte].
var listing = []string{"created", "ending_before", "limit", "starting_after"}

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

// filter contains the parameters that select objects, with their zero values if the form has none.
type filter struct {
	since  int64 // Unix seconds
	intent string
	types  []string
}

func (c *call) filter() filter {
	f := filter{intent: c.form.Or("payment_intent", ""), types: c.form.List("types")}
	if since := c.form.Int("created[gte]"); since != nil {
		f.since = *since
	}
	return f
}

// listed contains the fields by which lists are filtered.
type listed struct {
	Created       int64  `json:"created"`
	PaymentIntent string `json:"payment_intent"`
	Type          string `json:"type"`
}

func (f filter) matches(o listed) bool {
	return o.Created >= f.since && (f.intent == "" || o.PaymentIntent == f.intent) && (len(f.types) == 0 || slices.Contains(f.types, o.Type))
}

// list returns an operation that lists a page of the objects of a kind that match the parameters.
func list(kind store.Kind) func(*call) (any, error) {
	return func(c *call) (any, error) {
		limit, requested := c.limit(), c.filter()
		after, before, err := c.cursors(kind)
		if err != nil {
			return nil, err
		}
		page := &List{Object: "list", Data: []json.RawMessage{}, URL: c.path}
		for _, text := range c.walk(kind, requested.intent, after, before) {
			var o listed
			if err := json.Unmarshal(text, &o); err != nil {
				return nil, err
			}
			if o.Created < requested.since && before == "" && kind != store.Events { // ids sort by time, but an event can contain a different time
				break
			}
			if !requested.matches(o) {
				continue
			}
			if page.HasMore = len(page.Data) == limit; page.HasMore {
				break
			}
			page.Data = append(page.Data, slices.Clone(text))
		}
		if before != "" {
			slices.Reverse(page.Data)
		}
		return page, nil
	}
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

// walk lists objects, the newest first, or the oldest first if before is given.
func (c *call) walk(kind store.Kind, intent, after, before string) iter.Seq2[string, []byte] {
	switch {
	case before != "":
		return c.Tx.Oldest(c.Scope, kind, before)
	case intent != "":
		return c.Tx.OfIntent(c.Scope, kind, intent, after)
	default:
		return c.Tx.Newest(c.Scope, kind, after)
	}
}

// get returns an operation that returns the object with the id in the path.
func get(kind store.Kind) func(*call) (any, error) {
	return func(c *call) (any, error) {
		text := c.Tx.Raw(c.Scope, kind, c.id)
		if text == nil {
			return nil, domain.Missing(http.StatusNotFound, objectNames[kind], c.id, "id")
		}
		return json.RawMessage(slices.Clone(text)), nil
	}
}

var objectNames = map[store.Kind]string{
	store.Intents: "payment_intent", store.Charges: "charge", store.Refunds: "refund", store.Disputes: "dispute", store.Events: "event",
}
