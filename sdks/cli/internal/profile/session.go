package profile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// Session is a client of a platform with a credential.
type Session struct {
	*holdfast.Client

	Name    string // of the profile; "" if the credential is from the environment
	Profile Profile
}

// Open returns a session with a profile. If name is empty, it uses the credential in HOLDFAST_API_KEY, otherwise HOLDFAST_PROFILE,
// otherwise the current profile.
func (f Folder) Open(ctx context.Context, name, agent string) (*Session, error) {
	if name == "" {
		if key := os.Getenv("HOLDFAST_API_KEY"); key != "" {
			return fromEnvironment(ctx, key, agent)
		}
		name = os.Getenv("HOLDFAST_PROFILE")
	}
	c, err := f.Read()
	if err != nil {
		return nil, err
	}
	s := &Session{}
	if s.Name, s.Profile, err = c.Named(name); err != nil {
		return nil, err
	}
	credential, err := f.read(s.Profile.Store, s.Profile.Ref)
	if err != nil {
		return nil, err
	}
	option := holdfast.WithAPIKey(credential.APIKey)
	if credential.APIKey == "" {
		option = holdfast.WithTokenSource(&tokens{folder: f, store: s.Profile.Store, ref: s.Profile.Ref, current: credential})
	}
	s.Client, err = NewClient(s.Profile.BaseURL, agent, option)
	return s, err
}

// NewClient returns a client of a platform with a credential.
func NewClient(baseURL, agent string, credential holdfast.ClientOption) (*holdfast.Client, error) {
	return holdfast.New(holdfast.WithBaseURL(baseURL), credential, holdfast.WithDefaults(holdfast.WithHeader("User-Agent", agent)))
}

// fromEnvironment returns a session with a credential of the environment. The platform says which mode an access token has.
func fromEnvironment(ctx context.Context, key, agent string) (*Session, error) {
	address := os.Getenv("HOLDFAST_BASE_URL")
	if address == "" {
		return nil, errors.New("HOLDFAST_API_KEY is set, but HOLDFAST_BASE_URL is not: set it to the address of the platform, such as https://api.example.com")
	}
	base, err := BaseURL(address)
	if err != nil {
		return nil, fmt.Errorf("HOLDFAST_BASE_URL: %w", err)
	}
	s := &Session{Profile: Profile{BaseURL: base, Mode: ModeOf(key), Type: "api_key"}}
	if s.Client, err = NewClient(base, agent, holdfast.WithAPIKey(key)); err != nil {
		return nil, err
	}
	if s.Profile.Mode == "" {
		me, err := s.Me.Get(ctx)
		if err != nil {
			return nil, err
		}
		s.Profile.Mode, s.Profile.Type = string(me.Mode), string(me.Type)
	}
	return s, nil
}

// ModeOf returns the mode of an API key, or "" if the form of the credential does not show it.
func ModeOf(key string) string {
	switch {
	case strings.HasPrefix(key, "svc_test_"):
		return Test
	case strings.HasPrefix(key, "svc_live_"):
		return Live
	}
	return ""
}

// Console returns the address of the platform's console.
func (s *Session) Console() string { return Origin(s.Profile.BaseURL) + "/admin" }

// Origin returns the scheme and host of a URL.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Revoke ends the OAuth grant of a profile. It does nothing for API keys, which the operator revokes in the console.
func (f Folder) Revoke(ctx context.Context, p Profile) error {
	c, err := f.read(p.Store, p.Ref)
	if err != nil || c.RevokeURL == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	form := url.Values{"token": {c.RefreshToken}, "client_id": {c.ClientID}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the platform returned %s", response.Status)
	}
	return nil
}
