package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func operatorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "operator", Short: "Manage operators, the people who sign in."}
	cmd.AddCommand(operatorInvite(), operatorList(), operatorRole(), operatorRemove(), operatorDisable(), operatorEnable(), operatorErase(), operatorReset())
	return cmd
}

const roles = "owner, admin, staff or viewer"

func operatorInvite() *cobra.Command {
	var in app.Invitation
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "invite EMAIL", Short: "Invite a person to a tenant; prints a one-time link that is valid for 24 hours.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			in.Tenant, in.Email = of.ID, args[0]
			o, token, err := t.InviteOperator(t.cmd.Context(), t.by, in)
			if err != nil {
				return err
			}
			return t.giveLink(o, token, domain.InviteSubject(of.Name), "has a password already, and signs in as before")
		}),
	})
	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	f.StringVar(&in.Role, "role", "", roles)
	f.StringVar(&in.Name, "name", "", "name of the person")
	return required(cmd, "tenant", "role", "name")
}

// giveLink prints a one-time link, which is secret until it is used, and sends it by e-mail if mail is configured.
func (t tool) giveLink(o domain.Operator, token, subject, without string) error {
	out := struct {
		ID    string  `json:"id"`
		Email string  `json:"email"`
		Link  *string `json:"link"`
	}{ID: o.ID.String(), Email: o.Email}
	if token == "" {
		return t.print(out, []string{o.Email, without})
	}
	out.Link = new(domain.LinkURL(t.conf.AuthURL, token))
	mailed, err := t.mail(o.Email, subject, *out.Link)
	if err != nil {
		fmt.Fprintf(t.cmd.ErrOrStderr(), "The link was not sent by e-mail: %v\n", err)
	}
	return t.print(out, []string{o.Email, *out.Link}, []string{"", "The link works once, for 24 hours." + mailed})
}

// mail sends a link and returns the text to print about it.
func (t tool) mail(to, subject, link string) (said string, err error) {
	m, err := mailer(t.conf.Mail)
	if err != nil || m == nil {
		return "", err
	}
	if err := m.Send(t.cmd.Context(), to, subject, domain.LinkMessage(subject, link)); err != nil {
		return "", err
	}
	return " It was mailed to " + to + ".", nil
}

func operatorList() *cobra.Command {
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "list", Short: "List the operators of a tenant.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			members, err := t.Members(t.cmd.Context(), of.ID)
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminOperator, 0, len(members)), [][]string{{"ID", "E-MAIL", "NAME", "ROLE", "STATE"}}
			for _, m := range members {
				o := view.OperatorForAdmin(m)
				out, rows = append(out, o), append(rows, []string{o.ID, o.Email, o.Name, o.Role, o.State})
			}
			return t.print(out, rows...)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	return required(cmd, "tenant")
}

func operatorRole() *cobra.Command {
	var tenant, role string
	cmd := &cobra.Command{
		Use: "role EMAIL", Short: "Change an operator's role at a tenant; apps immediately lose scopes that the new role does not include.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			return t.inTenant(tenant, func(of domain.Tenant) (bool, error) {
				return t.SetRole(t.cmd.Context(), t.by, app.MemberRef{Tenant: of.ID, Email: args[0]}, role)
			})
		}),
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	cmd.Flags().StringVar(&role, "role", "", roles)
	return required(cmd, "tenant", "role")
}

func operatorRemove() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "remove EMAIL", Short: "Remove an operator from a tenant and revoke their grants there.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			return t.inTenant(tenant, func(of domain.Tenant) (bool, error) {
				return t.RemoveOperator(t.cmd.Context(), t.by, app.MemberRef{Tenant: of.ID, Email: args[0]})
			})
		}),
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	return required(cmd, "tenant")
}

// inTenant runs a change at a tenant and reports if the gateways have not received it yet.
func (t tool) inTenant(ref string, change func(of domain.Tenant) (published bool, err error)) error {
	of, err := t.Tenant(t.cmd.Context(), ref)
	if err != nil {
		return err
	}
	published, err := change(of)
	if err != nil {
		return err
	}
	t.late(published)
	return nil
}

func operatorDisable() *cobra.Command {
	return &cobra.Command{
		Use: "disable EMAIL", Short: "Disable an operator at all tenants: end their sessions, revoke their grants and block sign-in.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			_, published, err := t.DisableOperator(t.cmd.Context(), t.by, args[0])
			if err != nil {
				return err
			}
			t.late(published)
			return nil
		}),
	}
}

func operatorErase() *cobra.Command {
	return &cobra.Command{
		Use: "erase EMAIL", Short: "Disable an operator permanently and delete their address, name and sign-in data.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			_, published, err := t.EraseOperator(t.cmd.Context(), t.by, args[0])
			if err != nil {
				return err
			}
			t.late(published)
			return nil
		}),
	}
}

func operatorEnable() *cobra.Command {
	return &cobra.Command{
		Use: "enable EMAIL", Short: "Enable a disabled operator; their grants stay revoked.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			_, err := t.EnableOperator(t.cmd.Context(), t.by, args[0])
			return err
		}),
	}
}

func operatorReset() *cobra.Command {
	var factor bool
	cmd := withJSON(&cobra.Command{
		Use: "reset EMAIL", Short: "Print a one-time link to set a new password.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			o, token, err := t.ResetOperator(t.cmd.Context(), t.by, args[0], factor)
			if err != nil {
				return err
			}
			return t.giveLink(o, token, "Set a new password", "")
		}),
	})
	cmd.Flags().BoolVar(&factor, "second-factor", false, "also remove the second factor")
	return cmd
}
