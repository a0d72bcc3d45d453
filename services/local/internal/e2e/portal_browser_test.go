package e2e

import "testing"

// TestPortalInABrowser checks the developer portal in a real browser, at two widths and in two color schemes: axe finds no problems,
// the pages work by keyboard and without scripts, and a request from the API reference succeeds under its content security policy.
func TestPortalInABrowser(t *testing.T) {
	inABrowser(t, "portal.test.mjs", "API_KEY="+shared.env["DEMO_TEST_KEY"])
}
