package main

import (
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func grantCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "grant", Short: "List and revoke the grants of apps."}
	cmd.AddCommand(grantList(), grantRevoke())
	return cmd
}

func grantList() *cobra.Command {
	var tenant, operator string
	cmd := withJSON(&cobra.Command{
		Use: "list", Short: "List a tenant's grants, newest first.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			var by *domain.OperatorID
			if operator != "" {
				o, err := store.OperatorByEmail(t.cmd.Context(), t.DB.Read(t.cmd.Context()), operator)
				if err != nil {
					return err
				}
				by = &o.ID
			}
			grants, err := t.Grants(t.cmd.Context(), of.ID, by)
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminGrant, 0, len(grants)), [][]string{{"ID", "MODE", "APP", "OPERATOR", "SCOPES"}}
			for _, g := range grants {
				shown := view.GrantForAdmin(g.Grant)
				out = append(out, shown)
				rows = append(rows, []string{shown.ID, shown.Mode, g.AppName, g.Operator, strings.Join(g.Scopes, ",")})
			}
			return t.print(out, rows...)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	cmd.Flags().StringVar(&operator, "operator", "", "e-mail address of one operator")
	return required(cmd, "tenant")
}

func grantRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke GRANT_ID", Short: "Revoke a grant; its tokens stop working immediately.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParseGrantID(args[0])
			if err != nil {
				return err
			}
			published, err := t.RevokeGrant(t.cmd.Context(), t.by, id, domain.ByOperator)
			if err != nil {
				return err
			}
			t.late(published)
			return nil
		}),
	}
}
