package seed

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client calls the public API with one key.
type client struct{ base, key string }

// refusal is a response outside 2xx.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.message) }

// valid reports whether the platform accepts the key.
func (c *client) valid(ctx context.Context) (bool, error) {
	err := c.call(ctx, http.MethodGet, "/me", nil, nil)
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusUnauthorized {
		return false, nil
	}
	return err == nil, err
}

const (
	callLimit = 20 * time.Second // for a call with its retries
	callPause = 200 * time.Millisecond
)

// call sends body as JSON and decodes a 2xx response into out. Both can be nil. If a service that is starting responds with 503,
// call sends the request again with the same Idempotency-Key.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for key := rand.Text(); ; {
		text, err := c.send(ctx, method, path, key, sent)
		var r *refusal
		if errors.As(err, &r) && r.status == http.StatusServiceUnavailable {
			select {
			case <-ctx.Done():
			case <-time.After(callPause):
				continue
			}
		}
		if err != nil || out == nil {
			return err
		}
		return json.Unmarshal(text, out)
	}
}

func (c *client) send(ctx context.Context, method, path, key string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Prefer", "handling=strict")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %w", method, path, &refusal{resp.StatusCode, string(bytes.TrimSpace(text))})
	}
	return text, nil
}

// page is one page of a list.
type page[T any] struct {
	Data []T `json:"data"`
}

// list reads the first page of a list.
func list[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var p page[T]
	err := c.call(ctx, http.MethodGet, path, nil, &p)
	return p.Data, err
}
