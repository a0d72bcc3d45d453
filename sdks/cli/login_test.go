package main

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// consentLine is the address that login prints.
var consentLine = regexp.MustCompile(`(?m)^http\S+/oauth/authorize\?\S+$`)

// login logs in with the seeded app, as the owner of the seeded tenant consents in a browser.
func (c tool) login(mode string, args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := c.command(append([]string{"login", "--base-url", shared.Env["AUTH_URL"], "--no-browser"}, args...)...)
	said := &screen{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	await(ctx, c.t, "the address", func() bool { return consentLine.MatchString(said.String()) })
	back := consent(ctx, c.t, consentLine.FindString(said.String()), url.Values{"mode": {mode}, "decision": {"allow"}})
	forged := regexp.MustCompile(`state=[^&]+`).ReplaceAllString(back, "state=another")
	mixed := regexp.MustCompile(`iss=[^&]+`).ReplaceAllString(back, "iss=https%3A%2F%2Fevil.example") // a mix-up attack (RFC 9207)
	for address, want := range map[string]int{forged: http.StatusBadRequest, mixed: http.StatusBadRequest, strings.Replace(back, "/callback", "/other", 1): http.StatusBadRequest} {
		if status, _ := visit(ctx, c.t, http.DefaultClient, http.MethodGet, address, nil); status != want {
			c.t.Errorf("%s: %d, want %d", address, status, want)
		}
	}
	if status, page := visit(ctx, c.t, http.DefaultClient, http.MethodGet, back, nil); status != http.StatusOK || !strings.Contains(page, "You are logged in") {
		c.t.Errorf("%d %s", status, page)
	}
	if err := cmd.Wait(); err != nil {
		c.t.Fatalf("%v\n%s", err, said)
	}
	if !strings.Contains(said.String(), "Logged in to Demo Boats") || !strings.Contains(said.String(), mode+" mode") {
		c.t.Errorf("%s", said)
	}
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// consent signs in on the pages of an authorization request, submits the decision, and returns the address that the browser opens then.
func consent(ctx context.Context, t *testing.T, address string, decision url.Values) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	back := ""
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/callback") {
			back = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	_, page := visit(ctx, t, browser, http.MethodGet, address, nil)
	for _, fields := range []url.Values{
		{"email": {shared.Env["OPERATOR_EMAIL"]}, "password": {shared.Env["OPERATOR_PASSWORD"]}},
		decision,
	} {
		action := formAction.FindStringSubmatch(page)
		if action == nil {
			t.Fatalf("no form: %s", page)
		}
		if fields.Has("decision") && !strings.Contains(page, "Holdfast CLI") {
			t.Errorf("the page does not name the app: %s", page)
		}
		for _, m := range formHidden.FindAllStringSubmatch(page, -1) {
			fields.Set(m[1], html.UnescapeString(m[2]))
		}
		_, page = visit(ctx, t, browser, http.MethodPost, shared.Env["AUTH_URL"]+html.UnescapeString(action[1]), fields)
	}
	if back == "" {
		t.Fatalf("no redirect to the command line: %s", page)
	}
	return back
}

// visit sends a request like a browser, with a form if there is one.
func visit(ctx context.Context, t *testing.T, browser *http.Client, method, address string, form url.Values) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// stored returns the credentials of the tool by their names.
func (c tool) stored() map[string]map[string]any {
	c.t.Helper()
	var all map[string]map[string]any
	text, err := os.ReadFile(filepath.Join(c.folder(), "credentials.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// expire makes the stored access token look expired, or invalid.
func (c tool) expire(change func(credential map[string]any)) {
	c.t.Helper()
	all := c.stored()
	for _, one := range all {
		change(one)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.folder(), "credentials.json"), text, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestLoginInABrowser logs in with OAuth, works, refreshes the token, and logs out.
func TestLoginInABrowser(t *testing.T) {
	t.Parallel()
	c := bare(t)
	c.login("test")
	status := object(t, c.ok("status"))
	if status["profile"] != "default" || status["mode"] != "test" || status["type"] != "oauth" || status["tenant"] != "Demo Boats" || status["address"] != shared.Env["AUTH_URL"] {
		t.Errorf("%v", status)
	}
	if limit, _ := status["rate_limit"].(map[string]any); limit["remaining"] == float64(0) || limit["limit"] == float64(0) {
		t.Errorf("the limit is %v", status["rate_limit"])
	}
	if scopes, ok := status["scopes"].([]any); !ok || len(scopes) != 18 {
		t.Errorf("the scopes are %v", status["scopes"])
	}
	c.ok("customers", "create", "--first-name", "OAuth", "--email", "oauth@example.com")
	c.holdsNoSecretInProfiles()

	c.expire(func(one map[string]any) { one["expiry"] = time.Now().Add(time.Minute).UTC() })
	var group sync.WaitGroup
	for range 8 { // only one process may use the refresh token
		group.Go(func() {
			if r := c.run("", "me", "get"); r.code != 0 {
				t.Errorf("after the expiry: %+v", r)
			}
		})
	}
	group.Wait()
	c.expire(func(one map[string]any) { one["expiry"] = time.Now().Add(-time.Hour).UTC() })
	if got := c.ok("me", "get", "--jq", ".type"); got != "oauth" {
		t.Errorf("%s", got)
	}

	var token string
	for _, one := range c.stored() {
		token, _ = one["access_token"].(string)
	}
	if r := c.run("", "logout"); r.code != 0 || !strings.Contains(r.err, "Logged out of ") || len(c.stored()) != 0 {
		t.Errorf("%+v %v", r, c.stored())
	}
	withKey(t, token).fails(4, []string{"me", "get"}, "401 revoked_credential", "holdfast login")
	c.fails(4, []string{"me", "get"}, "you are not logged in")
}

// TestRefusedLogins checks errors that the platform reports before the browser opens, and the refusal of the operator.
func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	c := bare(t)
	login := []string{"login", "--base-url", shared.Env["AUTH_URL"], "--no-browser"}
	c.fails(4, append(login, "--client-id", "app_01k00000000000000000000001"), "identity app register-cli")
	c.fails(4, append(login, "--scopes", "read:nothing"), "the login was refused: invalid_scope")
	bare(t).fails(1, []string{"login", "--base-url", "http://127.0.0.1:1"}, "cannot reach http://127.0.0.1:1")

	cmd, said := c.start(login...)
	await(t.Context(), t, "the address", func() bool { return consentLine.MatchString(said.String()) })
	back := consent(t.Context(), t, consentLine.FindString(said.String()), url.Values{"decision": {"deny"}})
	if _, page := visit(t.Context(), t, http.DefaultClient, http.MethodGet, back, nil); !strings.Contains(page, "You are not logged in") {
		t.Errorf("%s", page)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 4 || !strings.Contains(said.String(), "the login was refused: access_denied") {
		t.Errorf("%v %s", err, said)
	}
	c.fails(4, []string{"me", "get"}, "you are not logged in")
}

// TestANewLoginEndsTheOldGrant checks that a profile leaves no grant behind.
func TestANewLoginEndsTheOldGrant(t *testing.T) {
	t.Parallel()
	c := bare(t)
	c.login("test", "--read-only")
	var token string
	for _, one := range c.stored() {
		token, _ = one["access_token"].(string)
	}
	c.fails(4, []string{"customers", "create", "--first-name", "A", "--email", "a@example.com"}, "403 insufficient_scope")
	c.login("live")
	withKey(t, token).fails(4, []string{"me", "get"}, "401 revoked_credential")
	if got := c.ok("me", "get", "--jq", ".mode"); got != "live" || len(c.stored()) != 1 {
		t.Errorf("%s, %d credentials", got, len(c.stored()))
	}
}

// holdsNoSecretInProfiles checks the form and the mode of the files.
func (c tool) holdsNoSecretInProfiles() {
	c.t.Helper()
	err := filepath.WalkDir(c.folder(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if secret := strings.Contains(string(text), "svc_"); secret != (d.Name() == "credentials.json") {
			c.t.Errorf("%s has a secret: %v", d.Name(), secret)
		}
		if info.Mode().Perm()&0o077 != 0 {
			c.t.Errorf("others can read %s: %v", d.Name(), info.Mode())
		}
		return err
	})
	if err != nil {
		c.t.Error(err)
	}
}

// TestProfiles checks logins with API keys, and the choice of profiles.
func TestProfiles(t *testing.T) {
	t.Parallel()
	c := bare(t)
	for name, key := range map[string]string{"demo": shared.Key, "live": shared.Env["DEMO_LIVE_KEY"], "other": shared.Env["OTHER_TEST_KEY"]} {
		r := c.run(key+"\n", "login", "--api-key", "--base-url", shared.BaseURL, "--profile", name)
		if r.code != 0 || strings.Contains(r.out+r.err, key) || !strings.Contains(r.err, "which only you can read") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	c.holdsNoSecretInProfiles()
	c.ok("profiles", "use", "other")
	for args, want := range map[string]string{"tenant get --jq .name": "Other Boats", "tenant get --jq .name --profile demo": "Demo Boats", "me get --jq .mode --profile live": "live"} {
		if got := c.ok(strings.Fields(args)...); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if got := c.with("HOLDFAST_PROFILE=demo").ok("tenant", "get", "--jq", ".name"); got != "Demo Boats" {
		t.Errorf("%s", got)
	}
	list := c.ok("profiles", "list")
	if !regexp.MustCompile(`(?m)^other +true +test +Other Boats +http://\S+ +api_key in file$`).MatchString(list) || strings.Count(list, "\n") != 3 {
		t.Errorf("%s", list)
	}
	c.fails(9, []string{"--profile", "live", "customers", "create", "--first-name", "A", "--email", "a@example.com"}, "live data")
	c.ok("profiles", "remove", "live")
	c.fails(2, []string{"--profile", "live", "me", "get"}, "no profile")
	c.ok("profiles", "remove", "demo") // it is not the current one
	if r := c.run(shared.Key+"\n", "login", "--api-key", "--base-url", shared.BaseURL, "--profile", "demo"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := c.run("", "profiles", "remove", "demo"); r.code != 0 || !strings.Contains(r.err, "Commands use the profile other from now on.") || c.ok("tenant", "get", "--jq", ".name") != "Other Boats" {
		t.Errorf("after the current profile was removed: %+v", r)
	}
	for _, name := range []string{"demo", "third"} {
		c.run(shared.Key+"\n", "login", "--api-key", "--base-url", shared.BaseURL, "--profile", name)
	}
	c.ok("profiles", "remove", "third")
	c.fails(2, []string{"me", "get"}, "no profile is chosen", "profiles use NAME")
	if len(c.stored()) != 2 {
		t.Errorf("%d credentials are stored", len(c.stored()))
	}
	for stdin, text := range map[string]string{"": "this is not an API key", "password": "this is not an API key", "svc_test_wrong": "401 invalid_credential"} {
		if r := c.run(stdin, "login", "--api-key", "--base-url", shared.BaseURL); r.code == 0 || !strings.Contains(r.err, text) {
			t.Errorf("%q: %+v", stdin, r)
		}
	}
	c.fails(2, []string{"login", "--api-key", "--base-url", "http://example.com"}, "must be https")
	c.fails(2, []string{"login", "--profile", "a/b", "--base-url", "https://example.com"}, "is not a name of a profile")
	bare(t).fails(2, []string{"login"}, "--base-url")
}
