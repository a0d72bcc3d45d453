package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

// TestConsoleActionsInABrowser runs each action of the operators' area in a real browser, once by mouse with scripts and once by
// keyboard without scripts. It runs a quarter of the actions each time, and all with TEST_SCALE=full. It checks that in each
// status, a page offers exactly the actions that the services accept.
func TestConsoleActionsInABrowser(t *testing.T) {
	var desks []map[string]string // tenants with an owner, a key, and a payment gateway
	for range 3 {
		m := newMerchant(t, "EUR")
		var invited struct{ Link string }
		email := m.slug + "@example.com"
		shared.identity(t, &invited, "operator", "invite", email, "--tenant", m.slug, "--name", "Dana", "--role", "owner", "--json")
		desks = append(desks, map[string]string{
			"email": email, "slug": m.slug, "link": invited.Link, "key": m.key, "secret": m.secret, "publishable": m.publishable,
		})
		m.want(t, http.StatusCreated, http.MethodPost, "/services", `{"name":"Harbour tour","duration_minutes":120}`)
	}
	text, err := json.Marshal(desks)
	if err != nil {
		t.Fatal(err)
	}
	inABrowser(t, "actions.test.mjs", "DESKS="+string(text), "RECEIVERS="+receivers, "STRIPE_URL="+shared.env["STRIPE_URL"], "SCALE="+os.Getenv("TEST_SCALE"))
}
