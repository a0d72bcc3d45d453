package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/parts"
)

// needsBrowser skips a test if there is no browser.
func needsBrowser(t *testing.T) {
	t.Helper()
	if os.Getenv("CHROMIUM") == "" {
		t.Skip("CHROMIUM is not set: run `make test`")
	}
}

// inABrowser runs a test file of browser/ in Chromium on the shared platform, with settings in addition to those in .run/env.
func inABrowser(t *testing.T, file string, settings ...string) {
	t.Helper()
	shared.inABrowser(t, file, settings...)
}

func (p *platform) inABrowser(t *testing.T, file string, settings ...string) {
	t.Helper()
	needsBrowser(t)
	scripts, err := filepath.Glob("browser/*.*")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%v: %v", scripts, err)
	}
	for _, name := range scripts {
		if _, err := os.ReadFile(name); err != nil { // so that go test runs again after the file changes
			t.Fatal(err)
		}
	}
	node := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.WaitDelay = "browser", 10*time.Second
		cmd.Env = os.Environ()
		for _, name := range []string{"AUTH_URL", "BASE_URL", "OAUTH_CLIENT_ID", "OPERATOR_EMAIL", "OPERATOR_PASSWORD"} {
			cmd.Env = append(cmd.Env, name+"="+p.env[name])
		}
		cmd.Env = append(cmd.Env, settings...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		t.Logf("%s", out)
	}
	node("npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock")
	node("node", "--test", "--test-reporter=spec", "--test-timeout=480000", file)
}

// TestOAuthInABrowser checks that operators can sign in, consent, and manage their account in a real browser: by keyboard, at two
// widths, in two color schemes and four languages. It also runs the complete flow of an app with a generic JavaScript OAuth
// client.
func TestOAuthInABrowser(t *testing.T) {
	var operators []map[string]string // one for each look
	for _, role := range []string{"owner", "staff"} {
		email := unique("browser-"+role) + "@example.com"
		var invited struct{ Link string }
		shared.identity(t, &invited, "operator", "invite", email, "--tenant", "demo", "--name", "Dana", "--role", role, "--json")
		operators = append(operators, map[string]string{"email": email, "role": role, "link": invited.Link})
	}
	text, err := json.Marshal(operators)
	if err != nil {
		t.Fatal(err)
	}
	port, err := ports.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ ID string } // an app that runs in a web page
	shared.identity(t, &page, "app", "create", "--tenant", "demo", "--name", "Page", "--redirect-uri", "http://127.0.0.1/callback",
		"--browser-origin", "http://"+parts.Loopback(port), "--scopes", "read:bookings", "--json")
	inABrowser(t, "oauth.test.mjs", "OPERATORS="+string(text), "PAGE_CLIENT_ID="+page.ID, "PAGE_ADDRESS="+parts.Loopback(port))
}
