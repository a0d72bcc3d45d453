package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Request is a request to any operation of the API, for programs that work with JSON instead of types. The methods of the resources are
// more convenient.
type Request struct {
	Method string // GET, POST, PATCH or DELETE
	Path   string // relative to the base URL, with escaped parameters: /bookings/bk_…
	Query  url.Values
	Body   json.RawMessage // nil for none
	Accept string          // media type of the response; "" means application/json
}

// Do sends a request and returns the body of its response. It retries and reports errors like the methods of the resources. POST and
// PATCH have an Idempotency-Key.
func (c *Client) Do(ctx context.Context, r Request, options ...Option) ([]byte, error) {
	request, err := r.call()
	if err != nil {
		return nil, err
	}
	return c.read(ctx, request, options)
}

// Open is [Client.Do] for responses that you read as they arrive, such as documents.
func (c *Client) Open(ctx context.Context, r Request, options ...Option) (*Document, error) {
	request, err := r.call()
	if err != nil {
		return nil, err
	}
	return document(ctx, c, request, options)
}

// call returns the request in the form of the generated methods.
func (r Request) call() (call, error) {
	if !strings.HasPrefix(r.Path, "/") || strings.ContainsAny(r.Path, "?#") {
		return call{}, fmt.Errorf("holdfast: the path must start with / and have no query, such as /bookings, not %q", r.Path)
	}
	request := call{method: r.Method, path: r.Path, params: rawParams(r.Query), accept: r.Accept}
	if r.Body != nil {
		request.body = r.Body
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		request.key, request.strict = true, true
	}
	if r.Accept == "" {
		request.accept = "application/json"
	}
	return request, nil
}

// rawParams are the parameters of a Request.
type rawParams url.Values

func (p rawParams) encode(q *query) {
	for name, values := range p {
		q.values[name] = values
	}
}
