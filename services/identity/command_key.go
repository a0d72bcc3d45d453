package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func keyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Manage API keys."}
	cmd.AddCommand(keyCreate(), keyList(), keyRotate(), keyRevoke())
	return cmd
}

func keyCreate() *cobra.Command {
	var in app.NewKey
	var tenant, expires string
	cmd := withJSON(&cobra.Command{
		Use: "create", Short: "Create an API key; its secret is shown once.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			in.Tenant = of.ID
			if expires != "" {
				if in.ExpiresAt, err = parseExpiry(expires); err != nil {
					return err
				}
			}
			k, secret, err := t.CreateKey(t.cmd.Context(), t.by, in)
			if err != nil {
				return err
			}
			return t.printSecret(k, secret)
		}),
	})
	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	f.StringVar(&in.Mode, "mode", "", "live or test")
	f.StringVar(&in.Scopes, "scopes", "", "all, or a comma-separated list of scopes")
	f.StringVar(&in.Name, "name", "", "purpose of the key")
	f.StringVar(&expires, "expires-at", "", expiresUsage)
	return required(cmd, "tenant", "mode", "scopes")
}

// printSecret prints a key that was just created.
func (t tool) printSecret(k domain.Key, secret string) error {
	out := struct {
		view.AdminKey
		Secret string `json:"secret"`
	}{view.KeyForAdmin(k), secret}
	return t.print(out, []string{"id", out.ID}, []string{"secret", secret}, []string{"", "The secret is shown only now."})
}

func keyRotate() *cobra.Command {
	var overlap time.Duration
	var expires string
	cmd := withJSON(&cobra.Command{
		Use: "rotate KEY_ID", Short: "Create a key with the same name, scopes and lifetime; the old key expires after the overlap. The secret is shown once.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParseKeyID(args[0])
			if err != nil {
				return err
			}
			if domain.CheckOverlap(overlap) != nil {
				return apperr.Field("overlap", "Must be 0s to 168h.")
			}
			tenantMode, err := t.KeyTenantMode(t.cmd.Context(), id)
			if err != nil {
				return err
			}
			r := app.Rotation{Overlap: overlap}
			if expires != "" {
				at, err := parseExpiry(expires)
				if err != nil {
					return err
				}
				r.ExpiresAt = patch.Value(*at)
			}
			k, secret, published, err := t.RotateKey(t.cmd.Context(), t.by, tenantMode, id, r)
			if err != nil {
				return err
			}
			t.late(published)
			return t.printSecret(k, secret)
		}),
	})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key keeps working, at most 168h; 0s revokes it immediately")
	cmd.Flags().StringVar(&expires, "expires-at", "", expiresUsage)
	return cmd
}

func keyList() *cobra.Command {
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "list", Short: "List a tenant's keys, newest first.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			keys, err := t.Keys(t.cmd.Context(), of.ID)
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminKey, 0, len(keys)), [][]string{{"ID", "MODE", "NAME", "STATE", "LAST USED", "SCOPES"}}
			for _, k := range keys {
				out, rows = append(out, view.KeyForAdmin(k)), append(rows, keyRow(k))
			}
			return t.print(out, rows...)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	return required(cmd, "tenant")
}

func keyRevoke() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "revoke KEY_ID", Short: "Revoke a key permanently; every gateway rejects it immediately.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParseKeyID(args[0])
			if err != nil {
				return err
			}
			k, published, err := t.RevokeKey(t.cmd.Context(), t.by, id)
			if err != nil {
				return err
			}
			t.late(published)
			return t.print(view.KeyForAdmin(k), []string{k.ID.String(), keyState(k)})
		}),
	})
}

func keyRow(k domain.Key) []string {
	used := "never"
	if k.LastUsedAt != nil {
		used = k.LastUsedAt.UTC().Format(time.RFC3339)
	}
	return []string{k.ID.String(), string(k.Mode()), k.Name, keyState(k), used, strings.Join(k.Scopes, ",")}
}

func keyState(k domain.Key) string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch status := k.Status(time.Now()); {
	case k.RevokedAt != nil:
		return "revoked " + at(*k.RevokedAt)
	case k.Replaced:
		return "rotated, ends " + at(*k.ExpiresAt)
	case k.ExpiresAt != nil && status == "expired":
		return "expired " + at(*k.ExpiresAt)
	case k.ExpiresAt != nil:
		return "active, expires " + at(*k.ExpiresAt)
	}
	return "active"
}

// expiresUsage describes the flag of the time at which a key expires.
const expiresUsage = "time at which the key expires, such as 2027-11-01T00:00:00Z, at most 10 years from now"

// parseExpiry parses the time at which a key expires.
func parseExpiry(text string) (*time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, apperr.Field("expires_at", "Must be a time such as 2027-11-01T00:00:00Z.").WithCause(err)
	}
	return &at, nil
}

// required marks flags that the command requires.
func required(cmd *cobra.Command, names ...string) *cobra.Command {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}
