// Command oauth-app is a small app that acts for an operator: it requests consent in the operator's browser, stores the tokens in
// a file, and lists bookings of the operator's business. It is a native app (RFC 8252) and listens on a loopback address for the
// response.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/oauth2"
)

func main() {
	tokens := flag.String("tokens", "", "file to store the tokens in (default oauth-app.json in the user's configuration folder)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *tokens); err != nil {
		fmt.Fprintln(os.Stderr, "oauth-app:", err)
		os.Exit(1)
	}
}

// app contains the registration of the app and the address of the platform.
type app struct {
	oauth2.Config

	issuer string // AUTH_URL
	api    string // BASE_URL
	tokens string // path of a file
}

func run(ctx context.Context, tokens string) error {
	a := &app{issuer: os.Getenv("AUTH_URL"), api: os.Getenv("BASE_URL"), tokens: tokens}
	a.ClientID, a.RedirectURL, a.Scopes = os.Getenv("OAUTH_CLIENT_ID"), os.Getenv("OAUTH_REDIRECT_URI"), []string{"read:bookings"}
	if a.issuer == "" || a.api == "" || a.ClientID == "" || a.RedirectURL == "" {
		return errors.New("AUTH_URL, BASE_URL, OAUTH_CLIENT_ID and OAUTH_REDIRECT_URI must be set: with `make up` running, `set -a; . .run/env`")
	}
	if a.tokens == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return err
		}
		a.tokens = filepath.Join(folder, "oauth-app.json")
	}
	if err := a.discover(ctx); err != nil {
		return err
	}
	token, err := a.stored()
	if errors.Is(err, os.ErrNotExist) {
		token, err = a.authorize(ctx)
	}
	if err != nil {
		return err
	}
	if err = a.list(ctx, token); ended(err) {
		if token, err = a.authorize(ctx); err == nil {
			err = a.list(ctx, token)
		}
	}
	return err
}

// errUnauthorized means that the API rejects the access token.
var errUnauthorized = errors.New("the access token was rejected")

// ended reports whether the operator revoked the grant, or the grant was not used for 30 days.
func ended(err error) bool {
	var refused *oauth2.RetrieveError
	return errors.Is(err, errUnauthorized) || errors.As(err, &refused) && refused.ErrorCode == "invalid_grant"
}

// discover reads the addresses of the endpoints (RFC 8414). The issuer in the document must match.
func (a *app) discover(ctx context.Context) error {
	var server struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	if err := get(ctx, http.DefaultClient, a.issuer+"/.well-known/oauth-authorization-server", &server); err != nil {
		return err
	}
	if server.Issuer != a.issuer {
		return fmt.Errorf("the issuer of %s is %s", a.issuer, server.Issuer)
	}
	a.Endpoint = oauth2.Endpoint{AuthURL: server.Authorize, TokenURL: server.Token, AuthStyle: oauth2.AuthStyleInParams}
	return nil
}

// authorize opens the consent page for the operator, waits for the response, and exchanges its code for tokens.
func (a *app) authorize(ctx context.Context) (*oauth2.Token, error) {
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	redirect, err := url.Parse(a.RedirectURL)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", redirect.Host)
	if err != nil {
		return nil, err
	}
	responses := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.URL.Query()
		if r.URL.Path != redirect.Path || got.Get("state") != state || got.Get("iss") != a.issuer { // not the response to this request
			http.Error(w, "This is not the response that the app waits for.", http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, "You can close this window and return to the app.")
		select {
		case responses <- got:
		default: // the response arrived twice
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()

	fmt.Printf("Open this address in a browser:\n%s\n", a.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got := <-responses:
		if code := got.Get("error"); code != "" {
			return nil, fmt.Errorf("%s: %s", code, got.Get("error_description"))
		}
		token, err := a.Exchange(ctx, got.Get("code"), oauth2.VerifierOption(verifier))
		if err != nil {
			return nil, err
		}
		return token, a.store(token)
	}
}

// refreshed refreshes expired tokens. It stores the new refresh token before it uses the new access token, because the old one is no longer valid.
func (a *app) refreshed(ctx context.Context, token *oauth2.Token) (*oauth2.Token, error) {
	fresh, err := a.TokenSource(ctx, token).Token()
	if err != nil || fresh.AccessToken == token.AccessToken {
		return fresh, err
	}
	return fresh, a.store(fresh)
}

// list prints ten bookings.
func (a *app) list(ctx context.Context, token *oauth2.Token) error {
	token, err := a.refreshed(ctx, token)
	if err != nil {
		return err
	}
	client := oauth2.NewClient(ctx, oauth2.StaticTokenSource(token))
	var me struct {
		ID, Mode string
		Scopes   []string
	}
	if err := get(ctx, client, a.api+"/me", &me); err != nil {
		return err
	}
	var bookings struct {
		Data []struct {
			ID, Status string
			Start      *time.Time `json:"starts_at"` // null for a booking of a whole day
		}
	}
	if err := get(ctx, client, a.api+"/bookings?limit=10", &bookings); err != nil {
		return err
	}
	fmt.Printf("Grant %s, %s data, %v: %d bookings\n", me.ID, me.Mode, me.Scopes, len(bookings.Data))
	for _, b := range bookings.Data {
		start := "whole day"
		if b.Start != nil {
			start = b.Start.Local().Format(time.DateTime)
		}
		fmt.Printf("%-19s  %-10s %s\n", start, b.Status, b.ID)
	}
	return nil
}

// get reads a JSON document.
func get(ctx context.Context, client *http.Client, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return err
	}
	if res.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w: %s", errUnauthorized, body)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds %s: %s", address, res.Status, body)
	}
	return json.Unmarshal(body, into)
}

// stored returns the tokens of an earlier run.
func (a *app) stored() (*oauth2.Token, error) {
	text, err := os.ReadFile(a.tokens)
	if err != nil {
		return nil, err
	}
	token := new(oauth2.Token)
	return token, json.Unmarshal(text, token)
}

// store replaces the file atomically, so a crash leaves either the old or the new tokens.
func (a *app) store(token *oauth2.Token) error {
	text, err := json.Marshal(token) //nolint:gosec // the file is for these
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(a.tokens), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(a.tokens+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(a.tokens+".new", a.tokens)
}
