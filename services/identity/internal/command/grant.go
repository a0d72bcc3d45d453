package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func grantCommand() *cobra.Command {
	var operator string
	return group("grant", "List and revoke the grants of apps.",
		command(spec{
			use: "list", short: "List a tenant's grants, newest first.",
			flags: []flag{tenantFlag(""), {&operator, "operator", "e-mail address of one operator", optional}},
			run: func(ctx context.Context, t tool) error {
				var by *domain.OperatorID
				if operator != "" {
					o, err := store.OperatorByEmail(ctx, t.DB.Read(ctx), operator)
					if err != nil {
						return err
					}
					by = &o.ID
				}
				return grants.list(t)(t.Grants(ctx, t.tenant.ID, by))
			},
		}),
		command(spec{
			use: "revoke GRANT_ID", short: "Revoke a grant; its tokens stop working immediately.", silent: true,
			run: withID(domain.ParseGrantID, func(ctx context.Context, t tool, id domain.GrantID) error {
				return t.late(t.RevokeGrant(ctx, t.by, id, domain.ByOperator))
			}),
		}))
}

var grants = table[domain.ShownGrant, view.AdminGrant]{
	view: func(g domain.ShownGrant) view.AdminGrant { return view.GrantForAdmin(g.Grant) },
	head: []string{"ID", "MODE", "APP", "OPERATOR", "SCOPES"},
	row: func(g domain.ShownGrant, v view.AdminGrant) []string {
		return []string{v.ID, v.Mode, g.AppName, g.Operator, strings.Join(g.Scopes, ",")}
	},
}
