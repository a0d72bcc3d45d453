package e2e

import (
	"encoding/json"
	"os"
	"testing"
)

// Operators work in a real browser, from an empty tenant to a paid invoice: by mouse with scripts, by keyboard without them. Half of the pages
// are checked, each at one of two widths, in one of two schemes and languages: all at both with TEST_SCALE=full.
func TestConsoleInABrowser(t *testing.T) {
	var operators []map[string]string // an owner of an empty tenant for each way of working
	for range 2 {
		slug := unique("desk")
		email := slug + "@example.com"
		shared.identity(t, nil, "tenant", "create", "--slug", slug, "--name", "Harbour Tours", "--timezone", "Europe/Berlin", "--currency", "EUR", "--json")
		var invited struct{ Link string }
		shared.identity(t, &invited, "operator", "invite", email, "--tenant", slug, "--name", "Dana", "--role", "owner", "--json")
		operators = append(operators, map[string]string{"email": email, "slug": slug, "link": invited.Link})
	}
	text, err := json.Marshal(operators)
	if err != nil {
		t.Fatal(err)
	}
	inABrowser(t, "console.test.mjs", "OPERATORS="+string(text), "RECEIVERS="+receivers, "SCALE="+os.Getenv("TEST_SCALE"))
}
