package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
)

// storefrontScopes are the scopes that the README of examples/storefront lists.
const storefrontScopes = "read:services,read:bookings,write:bookings,write:customers,payments:write"

// storefront starts examples/storefront with an API key of the tenant demo, and returns its address.
func storefront(t *testing.T, key string) string {
	t.Helper()
	if _, err := os.Stat("../../../../examples/storefront/build/server/main.js"); err != nil {
		t.Fatalf("%v: run `make storefront`", err)
	}
	cmd := exec.Command("node", "build/server/main.js") // the context of the test ends before its cleanup
	cmd.Dir = "../../../../examples/storefront"
	cmd.Env = append(os.Environ(), "PORT=0", "HOLDFAST_API_KEY="+key, "HOLDFAST_BASE_URL="+shared.env["BASE_URL"],
		"STRIPE_PUBLISHABLE_KEY="+shared.env["STRIPE_PUBLISHABLE_KEY"], "STRIPE_JS="+shared.env["STRIPE_URL"]+"/v3/")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the storefront ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); address != "" {
			return address
		}
	}
	t.Fatal("the storefront does not start")
	return ""
}

// TestStorefrontInABrowser books and pays on the page of examples/storefront: with double submits, reloads, a lost time, declined cards
// and an expired reservation.
func TestStorefrontInABrowser(t *testing.T) {
	if shared.cluster != nil {
		t.Skip("the Stripe stand-in of a cluster has no address for browsers")
	}
	var key struct{ Secret string }
	shared.identity(t, &key, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", storefrontScopes, "--name", "Storefront", "--json")
	address := storefront(t, key.Secret)
	inABrowser(t, "storefront.test.mjs", "STOREFRONT="+address, "STOREFRONT_KEY="+key.Secret, "API_KEY="+shared.env["DEMO_TEST_KEY"], "STRIPE_URL="+shared.env["STRIPE_URL"])
}
