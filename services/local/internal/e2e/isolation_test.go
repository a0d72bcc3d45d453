package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestIdsBelongToTheirTenantAndMode checks that each route with an id serves the owner of the id, and responds to every other
// caller with the same 404 as for an unknown id.
func TestIdsBelongToTheirTenantAndMode(t *testing.T) {
	own, live, other := shared.as(t, "DEMO_TEST_KEY"), shared.as(t, "DEMO_LIVE_KEY"), shared.as(t, "OTHER_TEST_KEY")
	var customer, booking map[string]any
	own.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"I","email":"i@example.com"}`).decode(t, &customer)
	own.want(t, http.StatusCreated, http.MethodPost, "/bookings", `{"event_date":"2033-01-02"}`).decode(t, &booking)
	paths := map[string]string{
		"customer": "/customers/" + customer["id"].(string),
		"booking":  "/bookings/" + booking["id"].(string),
		"service":  "/services/" + own.list(t, "/services?limit=1")[0]["id"].(string),
		"unit":     "/units/" + own.list(t, "/units?limit=1")[0]["id"].(string),
		"package":  "/packages/" + own.list(t, "/packages?limit=1")[0]["id"].(string),
	}
	for resource, path := range paths {
		own.want(t, http.StatusOK, http.MethodGet, path, "")
		for name, tc := range map[string]struct {
			by     *client
			path   string
			status int
			code   string
		}{
			"the other mode": {live, path, http.StatusForbidden, "mode_mismatch"},
			"another tenant": {other, path, http.StatusNotFound, resource + "_not_found"},
			"an unknown id":  {own, path[:len(path)-20] + strings.Repeat("0", 20), http.StatusNotFound, resource + "_not_found"},
			"a malformed id": {own, path[:strings.LastIndexByte(path, '/')] + "/nonsense", http.StatusNotFound, resource + "_not_found"},
		} {
			if a := tc.by.do(t, http.MethodGet, tc.path, "", ""); a.Status != tc.status || a.code() != tc.code {
				t.Errorf("%s, %s: %d %s, want %d %s", resource, name, a.Status, a.Body, tc.status, tc.code)
			}
		}
	}
}

func TestForeignIdsInBodiesAndFilters(t *testing.T) {
	own, live, other := shared.as(t, "DEMO_TEST_KEY"), shared.as(t, "DEMO_LIVE_KEY"), shared.as(t, "OTHER_TEST_KEY")
	var customer map[string]any
	own.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"I","email":"i@example.com"}`).decode(t, &customer)
	id := customer["id"].(string)
	own.want(t, http.StatusCreated, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":"2033-01-02","customer_id":%q}`, id))
	for name, by := range map[string]*client{"other mode": live, "other tenant": other} {
		a := by.do(t, http.MethodPost, "/bookings", fmt.Sprintf(`{"event_date":"2033-01-02","customer_id":%q}`, id), "")
		var e struct{ Errors map[string][]string }
		a.decode(t, &e)
		if a.Status != http.StatusUnprocessableEntity || len(e.Errors["customer_id"]) == 0 {
			t.Errorf("%s: a foreign customer in a body: %d %s", name, a.Status, a.Body)
		}
		if n := len(by.list(t, "/bookings?customer_id="+id)); n != 0 {
			t.Errorf("%s: a foreign customer in a filter shows %d bookings", name, n)
		}
	}
}

// TestBasesAreEquivalent checks that the three base paths and every host serve the same API with the same rate limit.
func TestBasesAreEquivalent(t *testing.T) {
	c := shared.as(t, "DEMO_LIVE_KEY")
	base := shared.env["BASE_URL"]
	legacy := shared.env["LEGACY_BASE_URL"]
	var remaining []string
	for _, url := range []string{base, legacy, base} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "bookings.tenant.example"
		req.Header.Set("Authorization", "Bearer "+c.key)
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", url, res.StatusCode)
		}
		remaining = append(remaining, res.Header.Get("RateLimit-Remaining"))
	}
	if remaining[0] == remaining[1] || remaining[1] == remaining[2] {
		t.Errorf("RateLimit-Remaining %v: the bases do not share one bucket", remaining)
	}
}
