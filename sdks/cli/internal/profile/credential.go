package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zalando/go-keyring"
)

// The stores of credentials.
const (
	Keyring = "keyring"
	File    = "file"
)

// service is the name under which the keyring shows the credentials.
const service = "holdfast"

// Credential is the secret of a profile: an API key, or the tokens of an OAuth grant.
type Credential struct {
	APIKey string `json:"api_key,omitempty"`

	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	ClientID     string    `json:"client_id,omitempty"`
	TokenURL     string    `json:"token_url,omitempty"`
	RevokeURL    string    `json:"revoke_url,omitempty"`

	// Refreshing is true from the time at which the refresh token is sent until the response is stored. A refresh token works once, so a
	// credential that is found in this state cannot be refreshed again.
	Refreshing bool `json:"refreshing,omitempty"`
}

// ErrNoCredential means that the store does not have the credential of a profile.
var ErrNoCredential = errors.New("the credential of the profile is missing: run `holdfast login`")

// Save stores a new credential in the keyring, or in a file if there is no keyring or HOLDFAST_CREDENTIALS is file. It returns the name
// of the store, and why the keyring is not used.
func (f Folder) Save(ref string, c Credential) (store string, reason error, err error) {
	if os.Getenv("HOLDFAST_CREDENTIALS") == File {
		return File, errors.New("HOLDFAST_CREDENTIALS is file"), f.write(File, ref, c)
	}
	if reason = f.write(Keyring, ref, c); reason == nil {
		return Keyring, nil, nil
	}
	return File, reason, f.write(File, ref, c)
}

// CredentialsPath is the file with the credentials that are not in the keyring.
func (f Folder) CredentialsPath() string { return f.path("credentials.json") }

// read returns a credential.
func (f Folder) read(store, ref string) (Credential, error) {
	var c Credential
	if store == Keyring {
		text, err := keyring.Get(service, ref)
		if errors.Is(err, keyring.ErrNotFound) {
			return c, ErrNoCredential
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &c)
		}
		if err != nil {
			return c, fmt.Errorf("read the credential from the keyring: %w", err)
		}
		return c, nil
	}
	all := map[string]Credential{}
	if err := readJSON(f.CredentialsPath(), &all); err != nil {
		return c, err
	}
	c, ok := all[ref]
	if !ok {
		return c, ErrNoCredential
	}
	return c, nil
}

// write stores a credential.
func (f Folder) write(store, ref string, c Credential) error {
	if store == Keyring {
		text, err := json.Marshal(c) //nolint:gosec // the keyring is for these
		if err != nil {
			return err
		}
		return keyring.Set(service, ref, string(text))
	}
	return f.edit(func(all map[string]Credential) { all[ref] = c })
}

// Delete removes a credential. It ignores one that is missing.
func (f Folder) Delete(store, ref string) error {
	if store == Keyring {
		if err := keyring.Delete(service, ref); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("delete the credential from the keyring: %w", err)
		}
		return nil
	}
	return f.edit(func(all map[string]Credential) { delete(all, ref) })
}

// edit changes the file with credentials.
func (f Folder) edit(change func(map[string]Credential)) error {
	return f.locked(func() error {
		all := map[string]Credential{}
		if err := readJSON(f.CredentialsPath(), &all); err != nil {
			return err
		}
		change(all)
		return writeJSON(f.CredentialsPath(), all)
	})
}
