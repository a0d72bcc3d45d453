package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"holdfast.dev/sdks/scenario/platform"
)

// shared is the platform of all tests: that of HOLDFAST_BASE_URL and HOLDFAST_API_KEY, otherwise a new one.
var shared api

// api is the API of a platform.
type api struct {
	baseURL, key string
	env          map[string]string // of .run/env; nil if the platform was running before
}

func TestMain(m *testing.M) {
	code := func() int {
		shared = api{os.Getenv("HOLDFAST_BASE_URL"), os.Getenv("HOLDFAST_API_KEY"), nil}
		if shared.baseURL == "" {
			p, err := platform.Start()
			if err != nil {
				return platform.Main(err)
			}
			defer p.Stop()
			shared = api{p.BaseURL, p.Key, p.Env}
		}
		return m.Run()
	}()
	os.Exit(code)
}

// setting returns a variable of .run/env, or of the environment if the platform was running before.
func (p api) setting(name string) string {
	if value, ok := p.env[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// create creates an object, and returns its ID.
func (p api) create(ctx context.Context, t *testing.T, path, body string) string {
	t.Helper()
	return p.post(ctx, t, path, body, http.StatusCreated)
}

// post sends a request without an SDK and without the proxy, and returns the ID of the object in the response.
func (p api) post(ctx context.Context, t *testing.T, path, body string, status int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.baseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ ID string }
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close(), json.Unmarshal(text, &object)); err != nil || response.StatusCode != status {
		t.Fatalf("%s: %d %s %v", path, response.StatusCode, text, err)
	}
	return object.ID
}

// list returns the rows of a list, without an SDK and without the proxy.
func (p api) list(ctx context.Context, t *testing.T, path string, query url.Values) []map[string]any {
	t.Helper()
	var all []map[string]any
	query.Set("limit", "100")
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.baseURL+path+"?"+query.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+p.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, response.StatusCode, text, err)
		}
		var page struct {
			Data       []map[string]any `json:"data"`
			NextCursor string           `json:"next_cursor"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Data...)
		if page.NextCursor == "" {
			return all
		}
		query.Set("cursor", page.NextCursor)
	}
}
