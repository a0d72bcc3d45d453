package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Token is what the token endpoint returns.
type Token struct {
	AccessToken  string
	RefreshToken string
	Expiry       time.Time // of the access token
}

// OAuthConfig describes an OAuth app and the grant of an operator.
type OAuthConfig struct {
	TokenURL string // …/oauth/token
	ClientID string
	Token    Token // from the code exchange, or the last one that Store received

	// Store saves a new token before it is used. Each refresh token works once: if you lose the new one, the operator must consent
	// again.
	Store func(context.Context, Token) error

	HTTPClient *http.Client // nil: http.DefaultClient
}

// early is how long before its expiry an access token is replaced.
const early = time.Minute

// OAuth is a [TokenSource] that refreshes access tokens. It is safe for concurrent use. Use one OAuth per grant: two of them would use
// the same refresh token, which revokes the grant.
type OAuth struct {
	config OAuthConfig

	lock  chan struct{} // full while a goroutine uses the fields below
	token Token
	saved bool // Store has received the token
}

// NewOAuth returns a source for a grant.
func NewOAuth(config OAuthConfig) *OAuth {
	if config.HTTPClient == nil {
		config.HTTPClient = http.DefaultClient
	}
	return &OAuth{config: config, token: config.Token, saved: true, lock: make(chan struct{}, 1)}
}

// Token returns an access token that is valid for at least a minute. If ctx ends during a refresh, the refresh continues, because its
// response contains the only valid refresh token.
func (o *OAuth) Token(ctx context.Context) (string, error) {
	select {
	case o.lock <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	type result struct {
		token string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		token, err := o.current(context.WithoutCancel(ctx))
		<-o.lock
		done <- result{token, err}
	}()
	select {
	case r := <-done:
		return r.token, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// current returns the access token, which it refreshes and stores if necessary.
func (o *OAuth) current(ctx context.Context) (string, error) {
	if o.token.AccessToken == "" || !o.token.Expiry.IsZero() && time.Until(o.token.Expiry) < early {
		token, err := o.refresh(ctx)
		if err != nil {
			return "", err
		}
		o.token, o.saved = token, false
	}
	if !o.saved && o.config.Store != nil {
		if err := o.config.Store(ctx, o.token); err != nil {
			return "", fmt.Errorf("store the token: %w", err)
		}
	}
	o.saved = true
	return o.token.AccessToken, nil
}

// Expire makes the next call of Token refresh the access token.
func (o *OAuth) Expire() {
	o.lock <- struct{}{}
	o.token.AccessToken = ""
	<-o.lock
}

// refresh exchanges the refresh token. The request is not repeated, because a refresh token that is used twice revokes the grant.
func (o *OAuth) refresh(ctx context.Context) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultAttemptTimeout)
	defer cancel()
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {o.config.ClientID}, "refresh_token": {o.token.RefreshToken}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.config.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return Token{}, fmt.Errorf("refresh the token: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "holdfast-go/"+Version)
	r, err := o.config.HTTPClient.Do(request)
	if err != nil {
		return Token{}, fmt.Errorf("refresh the token: %w", err)
	}
	defer func() { _ = r.Body.Close() }()
	var response struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		ExpiresIn    int64  `json:"expires_in"`
		Error        string `json:"error"`
		Description  string `json:"error_description"`
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(text, &response)
	}
	switch {
	case response.Error != "":
		return Token{}, &TokenError{Code: response.Error, Description: response.Description}
	case err != nil || r.StatusCode != http.StatusOK || response.AccessToken == "":
		return Token{}, errors.Join(fmt.Errorf("refresh the token: the token endpoint returned status %d without a token", r.StatusCode), err)
	}
	token := Token{AccessToken: response.AccessToken, RefreshToken: response.RefreshToken}
	if token.RefreshToken == "" {
		token.RefreshToken = o.token.RefreshToken
	}
	if response.ExpiresIn > 0 {
		token.Expiry = time.Now().Add(time.Duration(response.ExpiresIn) * time.Second)
	}
	return token, nil
}

// TokenError is an error of the token endpoint. With the code invalid_grant, ask the operator for consent again.
type TokenError struct {
	Code        string // such as invalid_grant
	Description string
}

// Error returns the code and the description.
func (e *TokenError) Error() string {
	return strings.TrimSuffix("refresh the token: "+e.Code+": "+e.Description, ": ")
}
