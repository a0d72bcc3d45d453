package profile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"api.example.com": "https://api.example.com/api/v1", "https://api.example.com/": "https://api.example.com/api/v1",
		"https://api.example.com/api/v1": "https://api.example.com/api/v1", "http://127.0.0.1:8080": "http://127.0.0.1:8080/api/v1",
		"http://localhost/v1/": "http://localhost/v1", "http://[::1]:1/behind": "http://[::1]:1/behind/api/v1",
		"http://example.com": "", "http://127.0.0.1.example.com": "", "ftp://example.com": "", "https://u:p@example.com": "", "https://": "", "https://a/?b": "", "": "",
	} {
		if got, err := BaseURL(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", address, got, err)
		}
	}
}

// TestKeyring checks that a credential is stored in the keyring if there is one, and that no file has it.
func TestKeyring(t *testing.T) {
	keyring.MockInit()
	t.Setenv("HOLDFAST_CREDENTIALS", "")
	f := Folder(t.TempDir())
	store, reason, err := f.Save("a-1", Credential{APIKey: "svc_test_secret"})
	if err != nil || reason != nil || store != Keyring {
		t.Fatalf("%s %v %v", store, reason, err)
	}
	if c, err := f.read(Keyring, "a-1"); err != nil || c.APIKey != "svc_test_secret" {
		t.Errorf("%+v %v", c, err)
	}
	if files, err := os.ReadDir(string(f)); err != nil || len(files) != 0 {
		t.Errorf("%v %v", files, err)
	}
	for range 2 {
		if err := f.Delete(Keyring, "a-1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.read(Keyring, "a-1"); !errors.Is(err, ErrNoCredential) {
		t.Error(err)
	}
	keyring.MockInitWithError(errors.New("no keyring"))
	store, reason, err = f.Save("a-1", Credential{APIKey: "svc_test_secret"})
	if err != nil || reason == nil || store != File {
		t.Fatalf("%s %v %v", store, reason, err)
	}
	if info, err := os.Stat(f.CredentialsPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// TestProfilesAreBounded checks the maximum number of profiles.
func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	add := func(from, to int) error {
		return f.Update(func(c *Config) error {
			for i := from; i < to; i++ {
				c.Profiles[fmt.Sprint(i)] = Profile{}
			}
			return nil
		})
	}
	if err := add(0, maxProfiles); err != nil {
		t.Error(err)
	}
	if err := add(maxProfiles, maxProfiles+1); err == nil || !strings.Contains(err.Error(), "at most 100 profiles") {
		t.Error(err)
	}
}

// endpoint is a token endpoint. respond returns the response to the n-th request, or panics to cut the connection.
type endpoint struct {
	url      string
	requests atomic.Int32
	sent     sync.Map // refresh tokens
}

func newEndpoint(t *testing.T, respond func(w http.ResponseWriter, n int32)) *endpoint {
	t.Helper()
	e := &endpoint{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := e.requests.Add(1)
		if _, twice := e.sent.LoadOrStore(r.FormValue("refresh_token"), true); twice {
			t.Errorf("the refresh token %s is sent twice", r.FormValue("refresh_token"))
		}
		respond(w, n)
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// source stores an expired credential and returns its tokens.
func source(t *testing.T, f Folder, address string) *tokens {
	t.Helper()
	c := Credential{AccessToken: "at_0", RefreshToken: "rt_0", Expiry: time.Now().Add(time.Minute), TokenURL: address, ClientID: "app_1"}
	if err := f.write(File, "a", c); err != nil {
		t.Fatal(err)
	}
	return &tokens{folder: f, store: File, ref: "a", current: c}
}

func grant(w http.ResponseWriter, n int32) {
	_, _ = fmt.Fprintf(w, `{"access_token":"at_%d","refresh_token":"rt_%d","expires_in":3600}`, n, n)
}

// TestOneRefreshForAllProcesses checks that processes that share a credential refresh it once, and that each of them gets the new token.
func TestOneRefreshForAllProcesses(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, grant)
	f := Folder(t.TempDir())
	first := source(t, f, e.url)
	var group sync.WaitGroup
	for range 10 {
		process := &tokens{folder: f, store: File, ref: "a", current: first.current}
		group.Go(func() {
			if token, err := process.Token(t.Context()); err != nil || token != "at_1" {
				t.Errorf("%s %v", token, err)
			}
		})
	}
	group.Wait()
	if n := e.requests.Load(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	if token, err := first.Token(t.Context()); err != nil || token != "at_1" {
		t.Errorf("%s %v", token, err)
	}
	first.Expire() // the API has rejected it
	if token, err := first.Token(t.Context()); err != nil || token != "at_2" {
		t.Errorf("%s %v", token, err)
	}
}

// TestARefreshIsNotRepeated checks that a refresh whose response was lost, or whose process was killed, is never sent again.
func TestARefreshIsNotRepeated(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, func(http.ResponseWriter, int32) { panic(http.ErrAbortHandler) })
	f := Folder(t.TempDir())
	lost := source(t, f, e.url)
	if _, err := lost.Token(t.Context()); err == nil {
		t.Fatal("no error")
	}
	for range 3 {
		other := &tokens{folder: f, store: File, ref: "a", current: lost.current}
		if _, err := other.Token(t.Context()); !errors.Is(err, errUnknownOutcome) || !strings.Contains(err.Error(), "holdfast login") {
			t.Errorf("%v", err)
		}
	}
	if n := e.requests.Load(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestARefreshCanBeRepeatedIfNothingWasDecided checks errors after which the refresh token is still valid, or is not by the word of the
// platform.
func TestARefreshCanBeRepeatedIfNothingWasDecided(t *testing.T) {
	t.Parallel()
	var seen []int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen = append(seen, int32(len(seen)))
		if len(seen) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"error":"temporarily_unavailable"}`)
			return
		}
		grant(w, int32(len(seen)))
	}))
	defer server.Close()
	f := Folder(t.TempDir())
	s := source(t, f, server.URL)
	if _, err := s.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "temporarily_unavailable") {
		t.Fatalf("%v", err)
	}
	if token, err := s.Token(t.Context()); err != nil || token != "at_2" || !slices.Equal(seen, []int32{0, 1}) {
		t.Errorf("%s %v", token, err)
	}
	unreachable := source(t, Folder(t.TempDir()), "http://127.0.0.1:1")
	for range 2 {
		if _, err := unreachable.Token(t.Context()); err == nil || errors.Is(err, errUnknownOutcome) {
			t.Errorf("%v", err)
		}
	}
}

// TestAnInterruptedRefreshIsStored checks that the response is stored although the command was interrupted.
func TestAnInterruptedRefreshIsStored(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	e := newEndpoint(t, func(w http.ResponseWriter, n int32) {
		cancel()
		grant(w, n)
	})
	f := Folder(t.TempDir())
	if _, err := source(t, f, e.url).Token(ctx); err != nil {
		t.Error(err)
	}
	if c, err := f.read(File, "a"); err != nil || c.RefreshToken != "rt_1" || c.Refreshing {
		t.Errorf("%+v %v", c, err)
	}
}
