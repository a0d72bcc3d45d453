// Package profile stores the platforms that the user works with, each with a reference to its credential, and opens clients of them.
package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"
)

// The modes of a credential.
const (
	Test = "test"
	Live = "live"
)

// Default is the name of the profile that login creates if no other name is given.
const Default = "default"

// maxProfiles is the maximum number of profiles.
const maxProfiles = 100

// Profile is a platform, and how to sign in to it. It never contains a secret.
type Profile struct {
	BaseURL string `json:"base_url"` // …/api/v1
	Mode    string `json:"mode"`     // test or live
	Type    string `json:"type"`     // api_key or oauth
	Tenant  string `json:"tenant"`   // the name of the operator, for people
	Store   string `json:"store"`    // keyring or file
	Ref     string `json:"ref"`      // the name of the credential there
}

// Config is the file with the profiles.
type Config struct {
	Current  string             `json:"current"`
	Profiles map[string]Profile `json:"profiles"`
}

// Folder is the folder with the profiles, and with the credentials if there is no keyring.
type Folder string

// Find returns the folder of HOLDFAST_CONFIG_DIR, otherwise holdfast in the user's configuration folder.
func Find() (Folder, error) {
	if dir := os.Getenv("HOLDFAST_CONFIG_DIR"); dir != "" {
		return Folder(dir), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no configuration folder: set HOLDFAST_CONFIG_DIR: %w", err)
	}
	return Folder(filepath.Join(dir, "holdfast")), nil
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Read returns the profiles. Without a file, there are none.
func (f Folder) Read() (Config, error) {
	c := Config{Profiles: map[string]Profile{}}
	err := readJSON(f.path("profiles.json"), &c)
	return c, err
}

// Update changes the profiles. Two processes never change them at the same time.
func (f Folder) Update(change func(*Config) error) error {
	return f.locked(func() error {
		c, err := f.Read()
		if err != nil {
			return err
		}
		if err := change(&c); err != nil {
			return err
		}
		if len(c.Profiles) > maxProfiles {
			return fmt.Errorf("there can be at most %d profiles: remove one with `holdfast profiles remove NAME`", maxProfiles)
		}
		return writeJSON(f.path("profiles.json"), c)
	})
}

// locked runs a function while no other process does.
func (f Folder) locked(run func() error) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	lock := flock.New(f.path("lock"))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	return errors.Join(run(), lock.Unlock())
}

// ErrNotSelected means that there are profiles, and none of them is the current one.
var ErrNotSelected = errors.New("no profile is chosen: run `holdfast profiles list`, then `holdfast profiles use NAME`")

// ErrNone means that no profile exists.
var ErrNone = errors.New("you are not logged in: run `holdfast login`, or set HOLDFAST_API_KEY and HOLDFAST_BASE_URL")

// UnknownError means that there is no profile of this name.
type UnknownError struct{ Name string }

// Error names the profile.
func (e UnknownError) Error() string {
	return fmt.Sprintf("there is no profile %q: `holdfast profiles list` shows all", e.Name)
}

// Named returns a profile, or the current one if name is empty.
func (c Config) Named(name string) (string, Profile, error) {
	if name == "" {
		name = c.Current
	}
	if name == "" && len(c.Profiles) > 0 {
		return "", Profile{}, ErrNotSelected
	}
	if name == "" {
		return "", Profile{}, ErrNone
	}
	p, ok := c.Profiles[name]
	if !ok {
		return "", Profile{}, UnknownError{name}
	}
	return name, p, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// CheckName returns an error if a profile cannot have the name.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%q is not a name of a profile: use 1 to 63 letters, digits, dots, hyphens and underscores, with a letter or a digit first", name)
	}
	return nil
}

// BaseURL returns the base URL of the API for the address of a platform, with or without /api/v1. A credential is only sent over HTTPS,
// or to this machine.
func BaseURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the address must be a URL such as https://api.example.com, not %q", address)
	}
	local := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return "", fmt.Errorf("the address must be https, or http on this machine, not %q", address)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(u.Path, "/v1") {
		u.Path += "/api/v1"
	}
	return u.String(), nil
}

// readJSON reads a file. A missing file changes nothing.
func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces a file in one step. Only the user can read it.
func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(append(text, '\n'))
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(next.Name()))
	}
	return nil
}
