package e2e

import (
	"encoding/json"
	"os"
	"testing"
)

// TestConsoleInABrowser checks the work of operators in a real browser, from an empty tenant to a paid invoice: by mouse with
// scripts, and by keyboard without scripts. It checks half of the pages, each at one of two widths and in one of two color schemes
// and languages. With TEST_SCALE=full, it checks all pages at both.
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
