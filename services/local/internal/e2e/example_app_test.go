package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/parts"
)

// exampleApp is a run of examples/oauth-app.
type exampleApp struct {
	cmd *exec.Cmd
	log *transcript
}

// startExampleApp starts the app with a file of tokens. Its port differs from the registered one: on a loopback address, an app
// can use any port.
func startExampleApp(t *testing.T, tokens string) *exampleApp {
	t.Helper()
	bin, err := filepath.Abs("../../../../bin/oauth-app")
	if err != nil {
		t.Fatal(err)
	}
	port, err := ports.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	a := &exampleApp{cmd: exec.CommandContext(t.Context(), bin, "-tokens", tokens), log: &transcript{}}
	for _, name := range []string{"AUTH_URL", "BASE_URL", "OAUTH_CLIENT_ID"} {
		a.cmd.Env = append(a.cmd.Env, name+"="+shared.env[name])
	}
	a.cmd.Env = append(a.cmd.Env, "OAUTH_REDIRECT_URI=http://"+parts.Loopback(port)+"/callback")
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	authorizeLine = regexp.MustCompile(`(?m)^http\S+/oauth/authorize\?\S+$`)
	listing       = regexp.MustCompile(`Grant (gr_\w+), test data, \[read:bookings\]: [1-9]\d* bookings\n(?:whole day|\d{4}-\d\d-\d\d \S+) +\w+ +bk_`)
)

// allow opens the address that the app prints, consents, and follows the redirect to the app.
func (a *exampleApp) allow(t *testing.T) {
	t.Helper()
	await(t, "the app shows its address", func() bool { return authorizeLine.MatchString(a.log.String()) })
	address := authorizeLine.FindString(a.log.String())
	authorization, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	got := newPerson(t, shared.env["AUTH_URL"]).consent(address, "test")
	forged := url.Values{"code": got["code"], "state": {"another"}, "iss": got["iss"]}
	for _, callback := range []struct {
		query  url.Values
		status int
	}{{forged, http.StatusBadRequest}, {got, http.StatusOK}} {
		res, err := httpClient.Get(authorization.Query().Get("redirect_uri") + "?" + callback.query.Encode())
		if err != nil {
			t.Fatalf("%v\n%s", err, a.log)
		}
		_ = res.Body.Close()
		if res.StatusCode != callback.status {
			t.Errorf("%v: %d, want %d", callback.query, res.StatusCode, callback.status)
		}
	}
}

// ends waits until the app exits without an error, and returns its last output.
func (a *exampleApp) ends(t *testing.T) string {
	t.Helper()
	if err := a.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, a.log)
	}
	listed := listing.FindStringSubmatch(a.log.String())
	if listed == nil {
		t.Fatalf("it prints %s", a.log)
	}
	return listed[1]
}

// TestTheExampleApp checks that the app of the documentation lists bookings after a consent, with the stored tokens, and after a
// refresh. It requests consent again after the operator revokes the grant.
func TestTheExampleApp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	first := startExampleApp(t, file)
	first.allow(t)
	grant := first.ends(t)
	if again := startExampleApp(t, file).ends(t); again != grant {
		t.Errorf("the second run works with %s, not %s", again, grant)
	}

	stored := map[string]any{}
	old, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(old, &stored) != nil {
		t.Fatalf("%v: %s", err, old)
	}
	before := stored["refresh_token"]
	stored["expiry"] = time.Now().Add(-time.Minute)
	expired, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, expired, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := startExampleApp(t, file).ends(t); again != grant {
		t.Errorf("after a refresh it works with %s, not %s", again, grant)
	}
	now, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(now, &stored) != nil || stored["refresh_token"] == before {
		t.Errorf("the refresh token was not replaced: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}

	shared.identity(t, nil, "grant", "revoke", grant)
	last := startExampleApp(t, file)
	last.allow(t)
	if again := last.ends(t); again == grant {
		t.Errorf("%s was ended", again)
	}
}
