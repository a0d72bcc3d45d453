package profile

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gofrs/flock"

	holdfast "holdfast.dev/sdks/go"
)

// tokens returns the access tokens of a profile. All processes share its credential: one of them refreshes it at a time, and the others
// use the result.
type tokens struct {
	folder     Folder
	store, ref string

	mu      sync.Mutex
	current Credential
	expired bool // the API rejected the access token
}

// early is how long before its expiry an access token is replaced. It is more than that of the SDK, so that the SDK never refreshes by
// itself.
const early = 90 * time.Second

var errUnknownOutcome = errors.New("the response to the last refresh of the access token was lost, and a refresh token works once: run `holdfast login`")

// Token implements holdfast.TokenSource. It continues when ctx ends, because the response to a refresh has the only valid refresh token.
func (t *tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fresh(t.current) {
		return t.current.AccessToken, nil
	}
	lock := flock.New(t.folder.path("refresh.lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	err := t.replace(context.WithoutCancel(ctx))
	return t.current.AccessToken, errors.Join(err, lock.Unlock())
}

// Expire makes the next call of Token return another access token.
func (t *tokens) Expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expired = true
}

// fresh reports whether an access token can be used.
func (t *tokens) fresh(c Credential) bool {
	rejected := t.expired && c.AccessToken == t.current.AccessToken
	return c.AccessToken != "" && !rejected && time.Until(c.Expiry) > early
}

// replace reads the stored credential, and refreshes it unless another process has done so.
func (t *tokens) replace(ctx context.Context) error {
	stored, err := t.folder.read(t.store, t.ref)
	if err != nil {
		return err
	}
	if t.fresh(stored) {
		t.current, t.expired = stored, false
		return nil
	}
	if stored.Refreshing {
		return errUnknownOutcome
	}
	stored.Refreshing = true
	if err := t.folder.write(t.store, t.ref, stored); err != nil {
		return err
	}
	source := holdfast.NewOAuth(holdfast.OAuthConfig{
		TokenURL: stored.TokenURL, ClientID: stored.ClientID,
		Token: holdfast.Token{RefreshToken: stored.RefreshToken},
		Store: func(_ context.Context, token holdfast.Token) error {
			stored.AccessToken, stored.RefreshToken, stored.Expiry, stored.Refreshing = token.AccessToken, token.RefreshToken, token.Expiry, false
			return t.folder.write(t.store, t.ref, stored)
		},
	})
	if _, err := source.Token(ctx); err != nil {
		if decided(err) { // the refresh token is not used up, or will never work
			stored.Refreshing = false
			return errors.Join(err, t.folder.write(t.store, t.ref, stored))
		}
		return err
	}
	t.current, t.expired = stored, false
	return nil
}

// decided reports whether the outcome of a failed refresh is known: the token endpoint responded, or the request was not sent.
func decided(err error) bool {
	var response *holdfast.TokenError
	var connection *net.OpError
	return errors.As(err, &response) || errors.As(err, &connection) && connection.Op == "dial"
}
