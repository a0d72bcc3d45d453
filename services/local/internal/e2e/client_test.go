package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/proto"
)

// rounds returns n, or ten times as many with TEST_SCALE=full.
func rounds(n int) int { return scaled(n, n*10) }

// full reports whether TEST_SCALE is full.
func full() bool { return os.Getenv("TEST_SCALE") == "full" }

// scaled returns normal, or large with TEST_SCALE=full.
func scaled(normal, large int) int {
	if full() {
		return large
	}
	return normal
}

// unique creates a value that no earlier run used.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, rand.Uint64()) }

// response is one HTTP response, read completely.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a response) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// id returns the id of the resource in the body.
func (a response) id(t *testing.T) string {
	t.Helper()
	var r struct{ ID string }
	a.decode(t, &r)
	return r.ID
}

// code returns error.code; "" on success.
func (a response) code() string {
	var e struct {
		Error struct{ Code string } `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &e)
	return e.Error.Code
}

// outage reports whether the response is one that is documented for an outage: 503 with a Retry-After, or 504.
func (a response) outage() bool {
	switch a.Status {
	case http.StatusServiceUnavailable:
		seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
		return a.code() == "unavailable" && err == nil && seconds >= 1
	case http.StatusGatewayTimeout:
		return a.code() == "upstream_timeout"
	default:
		return false
	}
}

// client calls the platform with one key and checks each response against the contract.
type client struct {
	base, key string
	checker   *contracttest.Checker
	reported  sync.Map // kinds of wrong responses that are already reported
}

// as creates a client with a key from .run/env.
func (p *platform) as(t *testing.T, name string) *client {
	t.Helper()
	if p.env[name] == "" {
		t.Fatalf(".run/env has no %s", name)
	}
	c := p.with(t, p.env[name])
	for _, path := range []string{"/customers", "/bookings", "/webhook-endpoints"} {
		c.list(t, path+"?limit=1") // waits until processes that an earlier test killed run again
	}
	return c
}

func (p *platform) with(t *testing.T, key string) *client {
	t.Helper()
	return &client{base: p.env["BASE_URL"], key: key, checker: contracttest.New(t, proto.OpenAPI)}
}

var httpClient = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// try sends one request. It returns a transport error and does not fail the test.
func (c *client) try(t *testing.T, method, path, body, key string) (response, error) {
	t.Helper()
	return c.send(t.Context(), t, method, path, body, map[string]string{"Idempotency-Key": key})
}

// send is try with headers, of which the empty ones are left out.
func (c *client) send(ctx context.Context, t *testing.T, method, path, body string, headers map[string]string) (response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, err
	}
	c.checker.Check(t, req, res, b)
	return response{Status: res.StatusCode, Header: res.Header, Body: b}, nil
}

func (c *client) do(t *testing.T, method, path, body, key string) response {
	t.Helper()
	a, err := c.try(t, method, path, body, key)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) want(t *testing.T, status int, method, path, body string) response {
	t.Helper()
	a := c.do(t, method, path, body, "")
	if a.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	return a
}

// insist follows the documentation for clients during an outage: it repeats the request with the same key until it gets one of
// the statuses. Any other response except an outage is an error.
func (c *client) insist(t *testing.T, method, path, body, key string, statuses ...int) response {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		a, err := c.try(t, method, path, body, key)
		switch {
		case err != nil: // the gateway itself was down
		case a.code() == "idempotency_in_progress": // the previous attempt is still running
		case slices.Contains(statuses, a.Status):
			return a
		case !a.outage():
			if _, reported := c.reported.LoadOrStore(fmt.Sprint(a.Status, a.code()), true); !reported { // an outage causes hundreds
				t.Errorf("%s %s meanwhile: %d, Retry-After %v, %s", method, path, a.Status, a.Header["Retry-After"], a.Body)
			}
		}
	}
	t.Fatalf("%s %s: not one of %v within 60 s", method, path, statuses)
	return response{}
}

// list is a page of any list.
type list struct {
	Data []map[string]any `json:"data"`
}

func (c *client) list(t *testing.T, path string) []map[string]any {
	t.Helper()
	var l list
	c.insist(t, http.MethodGet, path, "", "", http.StatusOK).decode(t, &l)
	return l.Data
}
