package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// call is one request, before options.
type call struct {
	method string
	path   string   // with {names} of the parameters
	ids    []string // the values of the path's parameters, in order
	params params   // or nil
	body   any      // or nil
	key    bool     // takes an Idempotency-Key
	strict bool     // takes Prefer: handling=strict
	accept string
}

// params are the parameters of the query and the header.
type params interface{ encode(q *query) }

// target returns the path with its parameters and the query.
func (c call) target(q *query) (string, error) {
	path, ids := c.path, c.ids
	for len(ids) > 0 {
		before, rest, _ := strings.Cut(path, "{")
		name, after, _ := strings.Cut(rest, "}")
		if ids[0] == "" {
			return "", fmt.Errorf("holdfast: %s %s: %s is empty", c.method, c.path, name)
		}
		path, ids = before+url.PathEscape(ids[0])+after, ids[1:]
	}
	if len(q.values) > 0 {
		path += "?" + q.values.Encode()
	}
	return path, nil
}

// query collects the parameters that have a value.
type query struct {
	values url.Values
	header http.Header
}

func newQuery(p params) *query {
	q := &query{values: url.Values{}, header: http.Header{}}
	if p != nil {
		p.encode(q)
	}
	return q
}

func (q *query) text(name, value string) {
	if value != "" {
		q.values.Set(name, value)
	}
}

func (q *query) number(name string, value int) {
	if value != 0 {
		q.values.Set(name, strconv.Itoa(value))
	}
}

func (q *query) flag(name string, value *bool) {
	if value != nil {
		q.values.Set(name, strconv.FormatBool(*value))
	}
}

func (q *query) time(name string, value time.Time) {
	if !value.IsZero() {
		q.values.Set(name, value.UTC().Format(time.RFC3339Nano))
	}
}

func (q *query) pairs(name string, values map[string]string) {
	for key, value := range values {
		q.values.Set(name+"["+key+"]", value)
	}
}

func (q *query) head(name, value string) {
	if value != "" {
		q.header.Set(name, value)
	}
}

// join adds several values, separated by commas.
func join[T ~string](q *query, name string, values []T) {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	q.text(name, strings.Join(texts, ","))
}

// one sends a request whose response is one object.
func one[T any](ctx context.Context, c *Client, request call, options []Option) (*T, error) {
	request.accept = "application/json"
	body, err := c.read(ctx, request, options)
	if err != nil {
		return nil, err
	}
	value, err := decode[T](body)
	if err != nil {
		return nil, fmt.Errorf("holdfast: %s %s: the response is not the expected JSON: %w", request.method, request.path, err)
	}
	return &value, nil
}

// none sends a request whose response has no body.
func none(ctx context.Context, c *Client, request call, options []Option) error {
	_, err := c.read(ctx, request, options)
	return err
}

// decode reads a value from JSON. An Event has the type of its event type.
func decode[T any](document []byte) (T, error) {
	var value T
	if event, ok := any(&value).(*Event); ok {
		var err error
		*event, err = ParseEvent(document)
		return value, err
	}
	err := json.Unmarshal(document, &value)
	return value, err
}

// Page is one page of a list.
type Page[T any] struct {
	Data       []T
	HasMore    bool
	NextCursor string // "" on the last page
}

// UnmarshalJSON reads a page.
func (p *Page[T]) UnmarshalJSON(document []byte) error {
	var page struct {
		Data       []json.RawMessage `json:"data"`
		HasMore    bool              `json:"has_more"`
		NextCursor string            `json:"next_cursor"`
	}
	if err := json.Unmarshal(document, &page); err != nil {
		return err
	}
	p.HasMore, p.NextCursor, p.Data = page.HasMore, page.NextCursor, make([]T, len(page.Data))
	for i, row := range page.Data {
		var err error
		if p.Data[i], err = decode[T](row); err != nil {
			return err
		}
	}
	return nil
}

// errNoNewCursor ends an iteration that would otherwise get the same page for ever.
var errNoNewCursor = errors.New("holdfast: the page says that more rows follow, but has no new cursor")

// all iterates over the rows of all pages. It gets a page when its first row is needed, and retains no earlier page.
func all[T any](next func(cursor string) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cursor := ""
		for {
			page, err := next(cursor)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, row := range page.Data {
				if !yield(row, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			if page.NextCursor == "" || page.NextCursor == cursor {
				var zero T
				yield(zero, errNoNewCursor)
				return
			}
			cursor = page.NextCursor
		}
	}
}
