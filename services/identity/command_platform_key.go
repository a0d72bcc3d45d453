package main

import (
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func platformKeyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "platform-key", Short: "Manage the credentials of the platform API."}
	cmd.AddCommand(platformKeyCreate(), platformKeyList(), platformKeyRevoke())
	return cmd
}

func platformKeyCreate() *cobra.Command {
	var name, scopes string
	cmd := withJSON(&cobra.Command{
		Use: "create", Short: "Create a platform key; its secret is shown once.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			k, secret, err := t.CreatePlatformKey(t.cmd.Context(), t.by, name, scopes)
			if err != nil {
				return err
			}
			out := struct {
				view.AdminPlatformKey
				Secret string `json:"secret"`
			}{view.PlatformKeyForAdmin(k), secret}
			return t.print(out, []string{"id", out.ID}, []string{"secret", secret}, []string{"", "The secret is shown only now."})
		}),
	})
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "purpose of the key")
	f.StringVar(&scopes, "scopes", "", "all, or a comma-separated list of: "+strings.Join(domain.PlatformScopes, ", "))
	return required(cmd, "name", "scopes")
}

func platformKeyList() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "list", Short: "List the platform keys, newest first.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			keys, err := t.PlatformKeys(t.cmd.Context())
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminPlatformKey, 0, len(keys)), [][]string{{"ID", "NAME", "STATE", "LAST USED", "CREATED BY", "SCOPES"}}
			for _, k := range keys {
				out, rows = append(out, view.PlatformKeyForAdmin(k)), append(rows, platformKeyRow(k))
			}
			return t.print(out, rows...)
		}),
	})
}

func platformKeyRow(k domain.PlatformKey) []string {
	state, used := "active", "never"
	if k.RevokedAt != nil {
		state = "revoked"
	}
	if k.LastUsedAt != nil {
		used = k.LastUsedAt.UTC().Format("2006-01-02 15:04")
	}
	return []string{k.ID.String(), k.Name, state, used, k.CreatedBy, strings.Join(k.Scopes, ",")}
}

func platformKeyRevoke() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "revoke KEY_ID", Short: "Revoke a platform key permanently, from its next request on.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParsePlatformKeyID(args[0])
			if err != nil {
				return err
			}
			k, err := t.RevokePlatformKey(t.cmd.Context(), t.by, id)
			if err != nil {
				return err
			}
			return t.print(view.PlatformKeyForAdmin(k), []string{k.ID.String(), "revoked"})
		}),
	})
}
