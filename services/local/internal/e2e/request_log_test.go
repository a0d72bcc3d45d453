package e2e

import (
	"net/http"
	"slices"
	"testing"
)

// TestRequestLogDespiteCrashes checks that each write is in the request log exactly once when the service that stores the log is
// killed again and again, and that no request fails meanwhile. Another tenant does not see them.
func TestRequestLogDespiteCrashes(t *testing.T) {
	onMachine(t)
	mine, other := newTenant(t), newTenant(t)
	var want []string
	for i := range 60 {
		a := mine.do(t, http.MethodPost, "/customers", `{"first_name":"L","email":"l@example.com"}`, unique("log"))
		if a.Status != http.StatusCreated {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		want = append(want, a.Header.Get("X-Request-Id"))
		if i%15 == 14 {
			shared.kill(t, "logs")
		}
	}
	failed := mine.do(t, http.MethodGet, "/customers/ada@example.com?expand=none", "", "")
	if failed.Status < http.StatusBadRequest {
		t.Fatalf("%d %s", failed.Status, failed.Body)
	}
	logged := func(c *client, query string) (found []map[string]any) {
		a := c.do(t, http.MethodGet, "/request-logs?limit=100"+query, "", "")
		if a.Status != http.StatusOK { // the service starts again
			return nil
		}
		var page struct{ Data []map[string]any }
		a.decode(t, &page)
		return page.Data
	}
	await(t, "all requests are logged", func() bool {
		return len(logged(mine, "&method=POST")) >= len(want) && len(logged(mine, "&status=4xx")) > 0
	})
	var got []string
	for _, l := range logged(mine, "&method=POST") {
		got = append(got, l["id"].(string))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d requests are logged, want %d", len(got), len(want))
	}
	for _, l := range logged(mine, "&status=4xx") {
		if l["path"] != "/customers/{id}" || l["id"] != failed.Header.Get("X-Request-Id") || l["code"] != failed.code() {
			t.Errorf("logged %v for %s", l, failed.Body)
		}
	}
	if l := logged(other, ""); len(l) != 0 {
		t.Errorf("the other tenant sees %v", l)
	}
}

// newTenant creates a tenant and returns a client with a key that has all scopes in test mode.
func newTenant(t *testing.T) *client {
	t.Helper()
	slug := unique("logs")
	var created struct{ Secret string }
	shared.identity(t, nil, "tenant", "create", "--slug", slug, "--name", "Logs", "--timezone", "UTC", "--currency", "USD")
	shared.identity(t, &created, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")
	return shared.with(t, created.Secret)
}
