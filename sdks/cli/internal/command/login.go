package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/browser"
	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/oauth"
	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/profile"
)

// loginFlags are the flags of login.
type loginFlags struct {
	baseURL, clientID string
	scopes            []string
	apiKey            bool
	readOnly          bool
	noBrowser         bool
}

func (a *App) login() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use: "login", Short: "Log in to a platform, in the browser or with an API key.",
		Long: "Log in to a platform. The browser asks for your consent, and for the business and the mode (test or live data). " +
			"With --api-key, the key is read from standard input or from a prompt, never from the command line.\n\n" +
			"The credential is stored in the keyring of your system, or in a file that only you can read if there is no keyring.",
		Example: "  holdfast login --base-url https://api.example.com\n  holdfast login --api-key --base-url http://127.0.0.1:8080 <key.txt",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runLogin(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.baseURL, "base-url", "", "`address` of the platform (default HOLDFAST_BASE_URL, otherwise that of the profile)")
	flags.BoolVar(&f.apiKey, "api-key", false, "log in with an API key instead of the browser")
	flags.StringSliceVar(&f.scopes, "scopes", nil, "`scopes` to request, separated by commas (default all)")
	flags.BoolVar(&f.readOnly, "read-only", false, "request only the scopes for reading")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "only print the address that you open in a browser on this machine")
	flags.StringVar(&f.clientID, "client-id", oauth.ClientID, "`ID` of the OAuth app")
	cmd.MarkFlagsMutuallyExclusive("api-key", "scopes")
	cmd.MarkFlagsMutuallyExclusive("api-key", "read-only")
	cmd.MarkFlagsMutuallyExclusive("scopes", "read-only")
	_ = cmd.RegisterFlagCompletionFunc("scopes", cobra.FixedCompletions(operations.Scopes, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (a *App) runLogin(ctx context.Context, f loginFlags) error {
	folder, err := profile.Find()
	if err != nil {
		return err
	}
	config, err := folder.Read()
	if err != nil {
		return err
	}
	name := cmp.Or(a.profile, os.Getenv("HOLDFAST_PROFILE"), config.Current, profile.Default)
	if err := profile.CheckName(name); err != nil {
		return usage(err)
	}
	old := config.Profiles[name]
	address := cmp.Or(f.baseURL, os.Getenv("HOLDFAST_BASE_URL"), old.BaseURL)
	if address == "" {
		return usagef("which platform? Pass --base-url, such as --base-url https://api.example.com")
	}
	base, err := profile.BaseURL(address)
	if err != nil {
		return usage(err)
	}
	get := a.consent
	if f.apiKey {
		get = a.readKey
	}
	c, err := get(ctx, base, f)
	if err != nil {
		return err
	}
	return a.finishLogin(ctx, folder, name, base, c)
}

// finishLogin checks the credential, and stores it with its profile.
func (a *App) finishLogin(ctx context.Context, folder profile.Folder, name, base string, c profile.Credential) error {
	client, err := profile.NewClient(base, agent, holdfast.WithAPIKey(cmp.Or(c.APIKey, c.AccessToken)))
	if err != nil {
		return err
	}
	me, err := client.Me.Get(ctx)
	if err != nil {
		return err
	}
	tenant, err := client.Tenant.Get(ctx)
	if err != nil {
		return err
	}
	p := profile.Profile{BaseURL: base, Mode: string(me.Mode), Type: string(me.Type), Tenant: tenant.Name, Ref: name + "-" + rand.Text()}
	var reason error
	if p.Store, reason, err = folder.Save(p.Ref, c); err != nil {
		return err
	}
	if reason != nil {
		a.note("No keyring is used (%v). The credential is stored in %s, which only you can read.", reason, folder.CredentialsPath())
	}
	var old profile.Profile
	err = folder.Update(func(config *profile.Config) error {
		old = config.Profiles[name]
		config.Profiles[name], config.Current = p, name
		return nil
	})
	if err != nil {
		return errors.Join(err, folder.Delete(p.Store, p.Ref))
	}
	if old.Ref != "" {
		if err := a.forget(ctx, folder, old); err != nil {
			a.note("The previous credential is left: %v", err)
		}
	}
	if os.Getenv("HOLDFAST_API_KEY") != "" {
		a.note("HOLDFAST_API_KEY is set: commands use it instead of the profile.")
	}
	a.note("Logged in to %s at %s, %s mode, as the profile %s.", tenant.Name, profile.Origin(base), p.Mode, name)
	return nil
}

// readKey reads an API key from a prompt, without showing it, or from standard input.
func (a *App) readKey(ctx context.Context, _ string, _ loginFlags) (profile.Credential, error) {
	var text string
	if f, ok := a.In.(*os.File); ok && a.interactive() {
		key, err := a.readSecret(ctx, f, "API key: ")
		if err != nil {
			return profile.Credential{}, err
		}
		text = key
	} else {
		line, err := bufio.NewReader(io.LimitReader(a.In, 4096)).ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return profile.Credential{}, err
		}
		if len(line)%2 != 0 && bytes.HasPrefix(line, markUTF16LE) {
			line = append(line, 0) // the second byte of the newline
		}
		if line, err = decode(line); err != nil {
			return profile.Credential{}, usage(err)
		}
		text = string(line)
	}
	key := strings.TrimSpace(text)
	if profile.ModeOf(key) == "" {
		return profile.Credential{}, usagef("this is not an API key: keys start with svc_test_ or svc_live_")
	}
	return profile.Credential{APIKey: key}, nil
}

// consent gets an OAuth grant in the browser.
func (a *App) consent(ctx context.Context, base string, f loginFlags) (profile.Credential, error) {
	server, err := oauth.Discover(ctx, profile.Origin(base))
	if err != nil {
		return profile.Credential{}, err
	}
	scopes := f.scopes
	if len(scopes) == 0 {
		scopes = server.Offered(operations.Scopes)
	}
	if f.readOnly {
		scopes = slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return !strings.Contains(scope, "read") })
	}
	token, err := oauth.Request{
		Server: server, ClientID: f.clientID, Scopes: scopes,
		Show: func(address string) {
			a.note("Open this address in your browser to continue:\n%s", address)
			if !f.noBrowser && hasBrowser() {
				openBrowser(address)
			}
		},
	}.Authorize(ctx)
	if err != nil {
		return profile.Credential{}, err
	}
	return profile.Credential{
		AccessToken: token.AccessToken, RefreshToken: token.RefreshToken, Expiry: token.Expiry.Round(time.Second).UTC(),
		ClientID: f.clientID, TokenURL: server.Token, RevokeURL: server.Revoke,
	}, nil
}

// openBrowser opens an address. If that fails, the user opens the printed one.
func openBrowser(address string) {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	_ = browser.OpenURL(address)
}

// logout returns the command that forgets a credential.
func (a *App) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Remove the credential of a profile, and end its OAuth grant.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := profile.Find()
			if err != nil {
				return err
			}
			config, err := folder.Read()
			if err != nil {
				return err
			}
			name, _, err := config.Named(cmp.Or(a.profile, os.Getenv("HOLDFAST_PROFILE")))
			if err != nil {
				return err
			}
			return a.remove(cmd.Context(), folder, name)
		},
	}
}

// forget ends the OAuth grant of a profile, and deletes its credential.
func (a *App) forget(ctx context.Context, folder profile.Folder, p profile.Profile) error {
	if err := folder.Revoke(ctx, p); err != nil && !errors.Is(err, profile.ErrNoCredential) {
		a.note("The grant was not ended at the platform: %v. Revoke it in the console at %s.", err, profile.Origin(p.BaseURL)+"/admin")
	}
	return folder.Delete(p.Store, p.Ref)
}

// remove removes a profile with its credential. The credential is also removed if the platform cannot be reached.
func (a *App) remove(ctx context.Context, folder profile.Folder, name string) error {
	var p profile.Profile
	var next string // the profile that becomes the current one
	err := folder.Update(func(config *profile.Config) (err error) {
		if _, p, err = config.Named(name); err != nil {
			return err
		}
		delete(config.Profiles, name)
		if config.Current == name {
			config.Current = ""
			for only := range config.Profiles {
				if len(config.Profiles) == 1 {
					config.Current = only
				}
			}
			next = config.Current
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.forget(ctx, folder, p); err != nil {
		return err
	}
	a.note("Logged out of %s (profile %s).", profile.Origin(p.BaseURL), name)
	if p.Type == "api_key" {
		a.note("The API key is still valid. Revoke it in the console if nothing else uses it.")
	}
	if next != "" {
		a.note("Commands use the profile %s from now on.", next)
	}
	return nil
}
