package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func platformKeyCommand() *cobra.Command {
	return group("platform-key", "Manage the credentials of the platform API.", platformKeyCreate(),
		command(spec{
			use: "list", short: "List the platform keys, newest first.",
			run: func(ctx context.Context, t tool) error { return platformKeys.list(t)(t.PlatformKeys(ctx)) },
		}),
		command(spec{
			use: "revoke KEY_ID", short: "Revoke a platform key permanently, from its next request on.",
			run: withID(domain.ParsePlatformKeyID, func(ctx context.Context, t tool, id domain.PlatformKeyID) error {
				return platformKeys.one(t)(t.RevokePlatformKey(ctx, t.by, id))
			}),
		}))
}

var platformKeys = table[domain.PlatformKey, view.AdminPlatformKey]{
	view: view.PlatformKeyForAdmin, head: []string{"ID", "NAME", "STATE", "LAST USED", "CREATED BY", "SCOPES"},
	row: func(_ domain.PlatformKey, v view.AdminPlatformKey) []string {
		state, used := "active", "never"
		if v.RevokedAt != nil {
			state = "revoked"
		}
		if v.LastUsedAt != nil {
			used = v.LastUsedAt.Format("2006-01-02 15:04")
		}
		return []string{v.ID, v.Name, state, used, v.CreatedBy, strings.Join(v.Scopes, ",")}
	},
	single: func(_ domain.PlatformKey, v view.AdminPlatformKey) [][]string { return [][]string{{v.ID, "revoked"}} },
}

func platformKeyCreate() *cobra.Command {
	var name, scopes string
	return command(spec{
		use: "create", short: "Create a platform key; its secret is shown once.",
		flags: []flag{
			{&name, "name", "purpose of the key", required},
			{&scopes, "scopes", "all, or a comma-separated list of: " + strings.Join(domain.PlatformScopes, ", "), required},
		},
		run: func(ctx context.Context, t tool) error {
			k, secret, err := t.CreatePlatformKey(ctx, t.by, name, scopes)
			if err != nil {
				return err
			}
			return t.printSecret(struct {
				view.AdminPlatformKey
				Secret string `json:"secret"`
			}{view.PlatformKeyForAdmin(k), secret}, k.ID.String(), secret)
		},
	})
}
