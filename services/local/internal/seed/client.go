package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client speaks the public API with one key.
type client struct{ base, key string }

// refusal is an answer that is no success.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.message) }

// valid tells whether the platform knows the key.
func (c *client) valid(ctx context.Context) (bool, error) {
	err := c.call(ctx, http.MethodGet, "/me", nil, nil)
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusUnauthorized {
		return false, nil
	}
	return err == nil, err
}

// call sends body as JSON and decodes a 2xx answer into out; either may be nil.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", method, path, &refusal{resp.StatusCode, string(bytes.TrimSpace(text))})
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// page is one list page.
type page[T any] struct {
	Data []T `json:"data"`
}

// list reads the first page of a list.
func list[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var p page[T]
	err := c.call(ctx, http.MethodGet, path, nil, &p)
	return p.Data, err
}
