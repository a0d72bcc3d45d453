package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"

	"holdfast.dev/sdks/scenario/platform"
)

// target is the platform under test.
type target struct{ baseURL, key string }

// shared is the platform of all tests.
var shared target

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run runs the tests with the platform of HOLDFAST_BASE_URL and HOLDFAST_API_KEY, or else with one of their own.
func run(m *testing.M) int {
	if address := os.Getenv("HOLDFAST_BASE_URL"); address != "" {
		shared = target{address, os.Getenv("HOLDFAST_API_KEY")}
		return m.Run()
	}
	p, err := platform.Start("../../bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer p.Stop()
	shared = target{p.Env["BASE_URL"], p.Env["DEMO_TEST_KEY"]}
	return m.Run()
}

// list returns the rows of a list, without an SDK and without the proxy.
func (p target) list(ctx context.Context, t *testing.T, path string, query url.Values) []map[string]any {
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
