package command

import (
	"context"
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
	return group("key", "Manage API keys.", keyCreate(),
		command(spec{
			use: "list", short: "List a tenant's keys, newest first.", flags: []flag{tenantFlag("")},
			run: func(ctx context.Context, t tool) error { return keys.list(t)(t.Keys(ctx, t.tenant.ID)) },
		}),
		keyRotate(),
		command(spec{
			use: "revoke KEY_ID", short: "Revoke a key permanently; every gateway rejects it immediately.",
			run: withID(domain.ParseKeyID, func(ctx context.Context, t tool, id domain.KeyID) error {
				return keys.changed(t)(t.RevokeKey(ctx, t.by, id))
			}),
		}))
}

var keys = table[domain.Key, view.AdminKey]{
	view: view.KeyForAdmin, head: []string{"ID", "MODE", "NAME", "STATE", "LAST USED", "SCOPES"},
	row: func(k domain.Key, v view.AdminKey) []string {
		return []string{v.ID, v.Mode, v.Name, keyState(k), timeText(k.LastUsedAt, "never"), strings.Join(k.Scopes, ",")}
	},
	single: func(k domain.Key, v view.AdminKey) [][]string { return [][]string{{v.ID, keyState(k)}} },
}

func keyState(k domain.Key) string {
	switch end := timeText(k.ExpiresAt, ""); {
	case k.RevokedAt != nil:
		return "revoked " + timeText(k.RevokedAt, "")
	case k.Replaced:
		return "rotated, ends " + end
	case end != "" && k.Status(time.Now()) == "expired":
		return "expired " + end
	case end != "":
		return "active, expires " + end
	}
	return "active"
}

func keyCreate() *cobra.Command {
	var in app.NewKey
	var expires string
	return command(spec{
		use: "create", short: "Create an API key; its secret is shown once.",
		flags: []flag{
			tenantFlag(""),
			{&in.Mode, "mode", "live or test", required},
			{&in.Scopes, "scopes", "all, or a comma-separated list of scopes", required},
			{&in.Name, "name", "purpose of the key", optional},
			{&expires, "expires-at", expiresUsage, optional},
		},
		run: func(ctx context.Context, t tool) (err error) {
			in.Tenant = t.tenant.ID
			if in.ExpiresAt, err = parseExpiry(expires); err != nil {
				return err
			}
			k, secret, err := t.CreateKey(ctx, t.by, in)
			return t.printKey(k, secret, err)
		},
	})
}

func keyRotate() *cobra.Command {
	overlap, expires := 24*time.Hour, ""
	return command(spec{
		use: "rotate KEY_ID", short: "Create a key with the same name, scopes and lifetime; the old key expires after the overlap. The secret is shown once.",
		flags: []flag{
			{&overlap, "overlap", "how long the old key keeps working, at most 168h; 0s revokes it immediately", optional},
			{&expires, "expires-at", expiresUsage, optional},
		},
		run: withID(domain.ParseKeyID, func(ctx context.Context, t tool, id domain.KeyID) error {
			if domain.CheckOverlap(overlap) != nil {
				return apperr.Field("overlap", "Must be 0s to 168h.")
			}
			of, err := t.KeyTenantMode(ctx, id)
			if err != nil {
				return err
			}
			at, err := parseExpiry(expires)
			if err != nil {
				return err
			}
			k, secret, published, err := t.RotateKey(ctx, t.by, of, id, app.Rotation{Overlap: overlap, ExpiresAt: patch.FromPointer(at)})
			return t.printKey(k, secret, t.late(published, err))
		}),
	})
}

// printKey prints a new key.
func (t tool) printKey(k domain.Key, secret string, err error) error {
	if err != nil {
		return err
	}
	return t.printSecret(struct {
		view.AdminKey
		Secret string `json:"secret"`
	}{view.KeyForAdmin(k), secret}, k.ID.String(), secret)
}

// expiresUsage describes the flag of the time at which a key expires.
const expiresUsage = "time at which the key expires, such as 2027-11-01T00:00:00Z, at most 10 years from now"

// parseExpiry parses the time at which a key expires. "" is nil.
func parseExpiry(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, apperr.Field("expires_at", "Must be a time such as 2027-11-01T00:00:00Z.").WithCause(err)
	}
	return &at, nil
}
