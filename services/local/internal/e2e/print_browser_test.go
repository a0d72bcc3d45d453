package e2e

import (
	"encoding/json"
	"testing"
)

// TestPrintInABrowser checks the printed calendar, the list of a departure's guests, and a booking: without navigation, with all
// contents, and with nothing cut off at the edge of the paper or of a box.
func TestPrintInABrowser(t *testing.T) {
	m := newMerchant(t, "EUR")
	var invited struct{ Link string }
	email := m.slug + "@example.com"
	shared.identity(t, &invited, "operator", "invite", email, "--tenant", m.slug, "--name", "Dana", "--role", "owner", "--json")
	text, err := json.Marshal(map[string]string{"email": email, "slug": m.slug, "link": invited.Link, "key": m.key})
	if err != nil {
		t.Fatal(err)
	}
	inABrowser(t, "print.test.mjs", "DESK="+string(text))
}
