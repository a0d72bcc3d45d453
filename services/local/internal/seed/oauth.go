package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"holdfast.dev/services/local/internal/state"
)

// RedirectURI is the redirect URI of demo's OAuth app. On a loopback address, an app can listen on any port.
const RedirectURI = "http://127.0.0.1:8976/callback"

// OperatorEmail is the address of the owner of demo.
const OperatorEmail = "owner@demo.example"

const (
	appName   = "Demo app"
	clientKey = "oauth.client"
)

// OperatorPassword returns the password of the owner of demo.
func OperatorPassword(keys *state.State) string { return keys.Secret("operator.password") }

// ClientID returns the client_id of demo's OAuth app after seeding.
func ClientID(keys *state.State) string { return keys.Given(clientKey) }

// oauth creates an owner of demo, an app that can request every scope, and the app of the command line.
func (s *Seeder) oauth(ctx context.Context) error {
	if err := s.operator(ctx); err != nil {
		return fmt.Errorf("making the operator: %w", err)
	}
	id, err := s.app(ctx)
	if err != nil {
		return fmt.Errorf("registering the OAuth app: %w", err)
	}
	s.State.Give(clientKey, id)
	var cli struct{ ID string }
	if err := s.manage(ctx, &cli, "app", "register-cli", "--tenant", "demo", "--json"); err != nil {
		return fmt.Errorf("registering the command line: %w", err)
	}
	return nil
}

// operator invites the owner of demo and accepts the invitation, unless this is already done.
func (s *Seeder) operator(ctx context.Context) error {
	var members []struct{ Email, State string }
	if err := s.manage(ctx, &members, "operator", "list", "--tenant", "demo", "--json"); err != nil {
		return err
	}
	for _, m := range members {
		if m.Email == OperatorEmail && m.State != "invited" {
			return nil
		}
	}
	var invited struct {
		Link *string `json:"link"`
	}
	args := []string{"operator", "invite", OperatorEmail, "--tenant", "demo", "--role", "owner", "--name", "Dana Owner", "--json"}
	for _, m := range members {
		if m.Email == OperatorEmail {
			args = []string{"operator", "reset", OperatorEmail, "--json"}
		}
	}
	if err := s.manage(ctx, &invited, args...); err != nil {
		return err
	}
	if invited.Link == nil {
		return nil
	}
	link, err := url.Parse(*invited.Link)
	if err != nil {
		return err
	}
	// Seeding uses the current address of the platform, which can differ from the address that its operators will use.
	return setPassword(ctx, strings.TrimSuffix(s.Base, "/api/v1")+link.Path, OperatorPassword(s.State))
}

// app returns the client_id of demo's app.
func (s *Seeder) app(ctx context.Context) (string, error) {
	var apps []struct{ ID, Name string }
	if err := s.manage(ctx, &apps, "app", "list", "--tenant", "demo", "--json"); err != nil {
		return "", err
	}
	for _, a := range apps {
		if a.Name == appName {
			return a.ID, nil
		}
	}
	var created struct{ ID string }
	err := s.manage(ctx, &created, "app", "create", "--tenant", "demo", "--name", appName, "--redirect-uri", RedirectURI, "--scopes", "all", "--json")
	return created.ID, err
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

// setPassword opens a one-time link like a browser and sets the password.
func setPassword(ctx context.Context, link, password string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	page, err := fetch(ctx, browser, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	token := formToken.FindStringSubmatch(page)
	if token == nil {
		return errors.New("the link's page has no form")
	}
	_, err = fetch(ctx, browser, http.MethodPost, link, url.Values{"form": {token[1]}, "password": {password}})
	return err
}

func fetch(ctx context.Context, browser *http.Client, method, address string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := browser.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s returned %d", method, req.URL.Path, res.StatusCode)
	}
	return string(body), nil
}
