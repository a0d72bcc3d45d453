package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
	"holdfast.dev/services/identity/internal/view"
)

const roles = "owner, admin, staff or viewer"

func operatorCommand() *cobra.Command {
	return group("operator", "Manage operators, the people who sign in.", operatorInvite(),
		command(spec{
			use: "list", short: "List the operators of a tenant.", flags: []flag{tenantFlag("")},
			run: func(ctx context.Context, t tool) error { return operators.list(t)(t.Members(ctx, t.tenant.ID)) },
		}),
		operatorRole(),
		command(spec{
			use: "remove EMAIL", short: "Remove an operator from a tenant and revoke their grants there.", flags: []flag{tenantFlag("")}, silent: true,
			run: func(ctx context.Context, t tool) error {
				return t.late(t.RemoveOperator(ctx, t.by, app.MemberRef{Tenant: t.tenant.ID, Email: t.args[0]}))
			},
		}),
		command(spec{
			use: "disable EMAIL", short: "Disable an operator at all tenants: end their sessions, revoke their grants and block sign-in.", silent: true,
			run: func(ctx context.Context, t tool) error {
				_, published, err := t.DisableOperator(ctx, t.by, t.args[0])
				return t.late(published, err)
			},
		}),
		command(spec{
			use: "enable EMAIL", short: "Enable a disabled operator; their grants stay revoked.", silent: true,
			run: func(ctx context.Context, t tool) error {
				_, err := t.EnableOperator(ctx, t.by, t.args[0])
				return err
			},
		}),
		command(spec{
			use: "erase EMAIL", short: "Disable an operator permanently and delete their address, name and sign-in data.", silent: true,
			run: func(ctx context.Context, t tool) error {
				_, published, err := t.EraseOperator(ctx, t.by, t.args[0])
				return t.late(published, err)
			},
		}),
		operatorReset())
}

var operators = table[domain.Member, view.AdminOperator]{
	view: view.OperatorForAdmin, head: []string{"ID", "E-MAIL", "NAME", "ROLE", "STATE"},
	row: func(_ domain.Member, v view.AdminOperator) []string {
		return []string{v.ID, v.Email, v.Name, v.Role, v.State}
	},
}

func operatorInvite() *cobra.Command {
	var in app.Invitation
	return command(spec{
		use: "invite EMAIL", short: "Invite a person to a tenant; prints a one-time link that is valid for 24 hours.",
		flags: []flag{tenantFlag(""), {&in.Role, "role", roles, required}, {&in.Name, "name", "name of the person", required}},
		run: func(ctx context.Context, t tool) error {
			in.Tenant, in.Email = t.tenant.ID, t.args[0]
			o, token, err := t.InviteOperator(ctx, t.by, in)
			if err == nil && token == "" {
				return t.print(operatorLink{ID: o.ID.String(), Email: o.Email}, []string{o.Email, "has a password already, and signs in as before"})
			}
			return t.giveLink(ctx, o, token, domain.InviteSubject(t.tenant.Name), err)
		},
	})
}

func operatorRole() *cobra.Command {
	var role string
	return command(spec{
		use: "role EMAIL", short: "Change an operator's role at a tenant; apps immediately lose scopes that the new role does not include.", silent: true,
		flags: []flag{tenantFlag(""), {&role, "role", roles, required}},
		run: func(ctx context.Context, t tool) error {
			return t.late(t.SetRole(ctx, t.by, app.MemberRef{Tenant: t.tenant.ID, Email: t.args[0]}, role))
		},
	})
}

func operatorReset() *cobra.Command {
	var factor bool
	return command(spec{
		use: "reset EMAIL", short: "Print a one-time link to set a new password.",
		flags: []flag{{&factor, "second-factor", "also remove the second factor", optional}},
		run: func(ctx context.Context, t tool) error {
			o, token, err := t.ResetOperator(ctx, t.by, t.args[0], factor)
			return t.giveLink(ctx, o, token, "Set a new password", err)
		},
	})
}

// operatorLink is an operator with a one-time link.
type operatorLink struct {
	ID    string  `json:"id"`
	Email string  `json:"email"`
	Link  *string `json:"link"` // null: the operator needs none
}

// giveLink prints a one-time link, which is secret until it is used, and sends it by e-mail if mail is configured.
func (t tool) giveLink(ctx context.Context, o domain.Operator, token, subject string, err error) error {
	if err != nil {
		return err
	}
	link := domain.LinkURL(t.conf.AuthURL, token)
	note := "The link works once, for 24 hours."
	mailer, err := peers.NewMailer(t.conf.Mail)
	if err == nil && mailer != nil {
		if err = mailer.Send(ctx, o.Email, subject, domain.LinkMessage(subject, link)); err == nil {
			note += " It was mailed to " + o.Email + "."
		}
	}
	if err != nil {
		fmt.Fprintf(t.cmd.ErrOrStderr(), "The link was not sent by e-mail: %v\n", err)
	}
	return t.print(operatorLink{o.ID.String(), o.Email, &link}, []string{o.Email, link}, []string{"", note})
}
