// Package holdfast is the Go SDK of the Holdfast booking platform.
//
// Create a client with [New], then call the methods of its resources:
//
//	client, err := holdfast.New() // reads HOLDFAST_API_KEY and HOLDFAST_BASE_URL
//	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{...})
//
// The client sends the same Idempotency-Key with all attempts of a write, so a retry never runs an operation twice. It repeats requests
// after connection errors and temporary failures. Errors of the API are of the type [*Error]; compare them with the values of
// [ErrorCode]:
//
//	if errors.Is(err, holdfast.ErrSlotUnavailable) { ... }
package holdfast

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// The environment variables that New reads if an option is missing.
const (
	envKey = "HOLDFAST_API_KEY"
	envURL = "HOLDFAST_BASE_URL"
)

// The defaults of a client.
const (
	defaultRetries        = 2
	defaultTimeout        = 2 * time.Minute
	defaultAttemptTimeout = 30 * time.Second
)

// Client calls the API with one credential. It is safe for concurrent use.
type Client struct {
	Resources

	baseURL  string
	tokens   TokenSource
	http     *http.Client
	agent    string
	settings settings
}

// New returns a client. Without options, it uses the API key in HOLDFAST_API_KEY and the base URL in HOLDFAST_BASE_URL.
func New(options ...ClientOption) (*Client, error) {
	c := &Client{
		baseURL: os.Getenv(envURL),
		agent:   "holdfast-go/" + Version,
		// The API does not redirect, and a redirect must not receive the credential.
		http:     &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		settings: settings{retries: defaultRetries, timeout: defaultTimeout, attemptTimeout: defaultAttemptTimeout},
	}
	if key := os.Getenv(envKey); key != "" {
		c.tokens = staticToken(key)
	}
	for _, option := range options {
		option(c)
	}
	if c.tokens == nil {
		return nil, errors.New("holdfast: no API key: set " + envKey + ", or pass WithAPIKey or WithTokenSource")
	}
	if c.baseURL == "" {
		return nil, errors.New("holdfast: no base URL: set " + envURL + ", or pass WithBaseURL")
	}
	u, err := url.Parse(c.baseURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("holdfast: the base URL must be an absolute URL such as https://api.example.com/api/v1, not %q", c.baseURL)
	}
	c.baseURL = strings.TrimRight(c.baseURL, "/")
	c.Resources = newResources(c)
	return c, nil
}

// ClientOption changes the settings of a client.
type ClientOption func(*Client)

// WithAPIKey sets the API key: svc_live_… or svc_test_….
func WithAPIKey(key string) ClientOption {
	return func(c *Client) {
		c.tokens = nil
		if key != "" {
			c.tokens = staticToken(key)
		}
	}
}

// WithTokenSource uses OAuth access tokens instead of an API key. [NewOAuth] returns a source that refreshes tokens.
func WithTokenSource(source TokenSource) ClientOption {
	return func(c *Client) { c.tokens = source }
}

// WithBaseURL sets the base URL, which ends in /api/v1.
func WithBaseURL(address string) ClientOption {
	return func(c *Client) { c.baseURL = address }
}

// WithHTTPClient replaces the HTTP client, for example to use a proxy. Do not set its Timeout: it would end event streams.
func WithHTTPClient(client *http.Client) ClientOption {
	return func(c *Client) { c.http = client }
}

// WithDefaults sets options for all requests of the client, such as [WithMaxRetries].
func WithDefaults(options ...Option) ClientOption {
	return func(c *Client) { c.settings = c.settings.with(options) }
}

// TokenSource returns the credential of each request.
type TokenSource interface {
	// Token returns an API key or an access token that is valid now.
	Token(ctx context.Context) (string, error)
}

// staticToken is an API key.
type staticToken string

// Token returns the key.
func (t staticToken) Token(context.Context) (string, error) { return string(t), nil }
