// Package oauth gets the consent of an operator in their browser (RFC 8252), and exchanges it for tokens.
package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// ClientID is the app "Holdfast CLI", which has the same ID on each platform.
const ClientID = "app_00000000000000000000000c11"

// callback is the path of the redirect URI.
const callback = "/callback"

// The times of a login.
const (
	patience = 15 * time.Minute // for the operator
	timeout  = 30 * time.Second // for a response of the platform
)

// ErrUnknownApp means that the app is not registered.
var ErrUnknownApp = errors.New("the platform does not know this tool: its administrator registers it with `identity app register-cli`")

// ErrRefused means that the operator or the platform did not agree.
var ErrRefused = errors.New("the login was refused")

// Server is an authorization server.
type Server struct {
	Issuer    string   `json:"issuer"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Revoke    string   `json:"revocation_endpoint"`
	Push      string   `json:"pushed_authorization_request_endpoint"`
	Scopes    []string `json:"scopes_supported"`
}

// Discover returns the authorization server of an API (RFC 9728 and 8414).
func Discover(ctx context.Context, origin string) (Server, error) {
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := get(ctx, origin+"/.well-known/oauth-protected-resource", &resource); err != nil {
		return Server{}, err
	}
	if len(resource.Servers) == 0 {
		return Server{}, fmt.Errorf("%s names no authorization server", origin)
	}
	var s Server
	issuer := resource.Servers[0]
	if err := get(ctx, issuer+"/.well-known/oauth-authorization-server", &s); err != nil {
		return s, err
	}
	if s.Issuer != issuer {
		return s, fmt.Errorf("the authorization server %s says that it is %q", issuer, s.Issuer)
	}
	return s, nil
}

// Offered returns the scopes that the server knows. A server that names none knows all.
func (s Server) Offered(scopes []string) []string {
	if len(s.Scopes) == 0 {
		return scopes
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return !slices.Contains(s.Scopes, scope) })
}

// Request is a request for the consent of an operator.
type Request struct {
	Server   Server
	ClientID string
	Scopes   []string
	Show     func(address string) // opens the page of the consent
}

// response is what the browser brings back.
type response struct{ code, err string }

// Authorize waits for the consent, and returns the tokens.
func (r Request) Authorize(ctx context.Context) (*oauth2.Token, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	responses := make(chan response, 1)
	server := &http.Server{Handler: r.handler(state, responses), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()

	config := oauth2.Config{
		ClientID: r.ClientID, Scopes: r.Scopes, RedirectURL: "http://" + listener.Addr().String() + callback,
		Endpoint: oauth2.Endpoint{AuthURL: r.Server.Authorize, TokenURL: r.Server.Token, AuthStyle: oauth2.AuthStyleInParams},
	}
	address, err := r.push(ctx, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	if err != nil {
		return nil, err
	}
	r.Show(address)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(patience):
		return nil, fmt.Errorf("no consent within %v", patience)
	case got := <-responses:
		if got.err != "" {
			return nil, fmt.Errorf("%w: %s", ErrRefused, got.err)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		token, err := config.Exchange(ctx, got.code, oauth2.VerifierOption(verifier))
		if err != nil {
			return nil, fmt.Errorf("exchange the code: %w", err)
		}
		return token, nil
	}
}

// handler receives the redirect. It ignores requests that do not belong to this login.
func (r Request) handler(state string, responses chan<- response) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		got := request.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if request.URL.Path != callback || got.Get("state") != state || got.Get("iss") != r.Server.Issuer {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "This is not the response that holdfast waits for.\n")
			return
		}
		out := response{code: got.Get("code")}
		text := "You are logged in. You can close this window and return to the terminal.\n"
		if code := got.Get("error"); code != "" {
			out.err = code
			if more := got.Get("error_description"); more != "" {
				out.err += ": " + more
			}
			text = "You are not logged in. You can close this window and return to the terminal.\n"
		}
		_, _ = io.WriteString(w, text)
		select {
		case responses <- out:
		default: // it arrived twice
		}
	})
}

// maxDocument is the maximum size of a discovery document, in bytes.
const maxDocument = 1 << 20

// get reads a JSON document. The address must not redirect.
func get(ctx context.Context, address string, to any) error {
	status, text, err := send(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s returned status %d: check the address of the platform", address, status)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s returned no JSON: check the address of the platform", address)
	}
	return nil
}

// push sends the parameters of an authorization request to the server (RFC 9126), which reports errors before the browser opens. It returns
// the address for the browser.
func (r Request) push(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || r.Server.Push == "" {
		return address, err
	}
	status, text, err := send(ctx, http.MethodPost, r.Server.Push, u.Query())
	if err != nil {
		return "", err
	}
	var response struct {
		RequestURI  string `json:"request_uri"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal(text, &response); err != nil {
		return "", fmt.Errorf("%s returned status %d without JSON", r.Server.Push, status)
	}
	switch {
	case response.Error == "invalid_client":
		return "", ErrUnknownApp
	case response.Error != "" || response.RequestURI == "":
		return "", fmt.Errorf("%w: %s: %s", ErrRefused, response.Error, response.Description)
	}
	u.RawQuery = url.Values{"client_id": {r.ClientID}, "request_uri": {response.RequestURI}}.Encode()
	return u.String(), nil
}

// send sends a request, with a form if there is one, and returns the status and the body. It does not follow redirects.
func send(ctx context.Context, method, address string, form url.Values) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.Do(request)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return 0, nil, fmt.Errorf("cannot reach %s: %w", address, err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxDocument))
	return r.StatusCode, text, err
}
