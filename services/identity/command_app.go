package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func appCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "app", Short: "Manage OAuth apps."}
	cmd.AddCommand(appCreate(), appRegisterCLI(), appList(), appShow(), appUpdate(), appVerify(), appDelete(), appAllow())
	return cmd
}

// appFlags are the flags of create and update.
type appFlags struct {
	name, scopes string
	redirects    []string
	origins      []string
	published    bool
	leeway       int
}

func (f *appFlags) add(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name shown on the consent page")
	flags.StringArrayVar(&f.redirects, "redirect-uri", nil, "redirect URI after consent; repeat the flag for several")
	flags.StringArrayVar(&f.origins, "browser-origin", nil, "origin of web pages that may use the app's tokens, such as https://app.example; repeat the flag for several, or pass \"\" for none")
	flags.StringVar(&f.scopes, "scopes", "", "scopes that the app may request: all, or a comma-separated list")
	flags.BoolVar(&f.published, "published", false, "allow operators of every tenant to use the app")
	flags.IntVar(&f.leeway, "reuse-leeway", 0, "number of seconds during which the previous refresh token remains valid, at most 10")
	return cmd
}

// patch returns the settings on the command line.
func (f *appFlags) patch(cmd *cobra.Command) app.Registration {
	var p app.Registration
	given := cmd.Flags().Changed
	if given("name") {
		p.Name = patch.Value(f.name)
	}
	if given("redirect-uri") {
		p.RedirectURIs = patch.Value(f.redirects)
	}
	if given("browser-origin") {
		p.Origins = patch.Value(slices.DeleteFunc(f.origins, func(one string) bool { return one == "" }))
	}
	if given("scopes") {
		p.Scopes = patch.Value(f.scopes)
	}
	if given("published") {
		p.Published = patch.Value(f.published)
	}
	if given("reuse-leeway") {
		p.ReuseLeeway = patch.Value(f.leeway)
	}
	return p
}

func (t tool) printApp(a domain.App) error {
	out := view.AppForAdmin(a)
	return t.print(out,
		[]string{"client_id", out.ID}, []string{"name", out.Name}, []string{"redirect URIs", strings.Join(out.RedirectURIs, " ")},
		[]string{"scopes", strings.Join(out.Scopes, ",")}, []string{"published", yes(out.Published)},
		[]string{"verified", yes(out.VerifiedAt != nil)}, []string{"browser origins", strings.Join(out.BrowserOrigins, " ")})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func appCreate() *cobra.Command {
	var tenant string
	f := &appFlags{}
	cmd := f.add(withJSON(&cobra.Command{
		Use: "create", Short: "Register an app of a tenant.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			a, err := t.CreateApp(t.cmd.Context(), t.by, of.ID, f.patch(t.cmd))
			if err != nil {
				return err
			}
			return t.printApp(a)
		}),
	}))
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	return required(cmd, "tenant", "name", "redirect-uri", "scopes")
}

func appRegisterCLI() *cobra.Command {
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "register-cli", Short: "Register the command line holdfast for the operators of every tenant, or renew its scopes.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			a, published, err := t.RegisterCommandLine(t.cmd.Context(), t.by, of.ID)
			if err != nil {
				return err
			}
			t.late(published)
			return t.printApp(a)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant that the consent page names as the publisher")
	return required(cmd, "tenant")
}

func appList() *cobra.Command {
	var tenant string
	var registered bool
	cmd := withJSON(&cobra.Command{
		Use: "list", Short: "List a tenant's apps, or those that registered or describe themselves, newest first.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			if registered {
				return t.printRegistered()
			}
			of, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			apps, err := t.Apps(t.cmd.Context(), of.ID)
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminApp, 0, len(apps)), [][]string{{"CLIENT ID", "NAME", "PUBLISHED", "REDIRECT URIS"}}
			for _, a := range apps {
				out = append(out, view.AppForAdmin(a))
				rows = append(rows, []string{a.ID.String(), a.Name, yes(a.Published), strings.Join(a.RedirectURIs, " ")})
			}
			return t.print(out, rows...)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of the tenant")
	cmd.Flags().BoolVar(&registered, "self-registered", false, "list the newest 1,000 apps that registered themselves, or whose CLIENT_ID is the URL of a document")
	cmd.MarkFlagsMutuallyExclusive("tenant", "self-registered")
	cmd.MarkFlagsOneRequired("tenant", "self-registered")
	return cmd
}

// printRegistered lists the apps that registered themselves.
func (t tool) printRegistered() error {
	apps, err := t.RegisteredApps(t.cmd.Context())
	if err != nil {
		return err
	}
	out, rows := make([]view.AdminRegisteredApp, 0, len(apps)), [][]string{{"CLIENT ID", "NAME", "CREATED", "LAST CONSENT", "REDIRECT URIS"}}
	for _, a := range apps {
		one := view.RegisteredAppForAdmin(a)
		used := "never"
		if one.UsedAt != nil {
			used = one.UsedAt.Format(time.RFC3339)
		}
		out = append(out, one)
		rows = append(rows, []string{cmp.Or(one.DocumentURL, one.ID), a.Name, one.CreatedAt.Format(time.RFC3339), used, strings.Join(a.RedirectURIs, " ")})
	}
	return t.print(out, rows...)
}

func appShow() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "show CLIENT_ID", Short: "Show an app.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := t.AppOfClient(t.cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a, err := t.AppByID(t.cmd.Context(), id)
			if err != nil {
				return err
			}
			return t.printApp(a.App)
		}),
	})
}

func appUpdate() *cobra.Command {
	f := &appFlags{}
	return f.add(withJSON(&cobra.Command{
		Use: "update CLIENT_ID", Short: "Update an app; its tokens lose removed scopes immediately.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParseAppID(args[0])
			if err != nil {
				return err
			}
			a, published, err := t.UpdateApp(t.cmd.Context(), t.by, id, f.patch(t.cmd))
			if err != nil {
				return err
			}
			t.late(published)
			return t.printApp(a)
		}),
	}))
}

func appVerify() *cobra.Command {
	var end bool
	cmd := withJSON(&cobra.Command{
		Use: "verify CLIENT_ID", Short: "Record that you have verified an app and its publisher, so that its consent page has no warning.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := domain.ParseAppID(args[0])
			if err != nil {
				return err
			}
			a, published, err := t.VerifyApp(t.cmd.Context(), t.by, id, !end)
			if err != nil {
				return err
			}
			t.late(published)
			return t.printApp(a.App)
		}),
	})
	cmd.Flags().BoolVar(&end, "end", false, "end the verification")
	return cmd
}

func appDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete CLIENT_ID", Short: "Delete an app; its tokens stop working immediately, and a CLIENT_ID that is a URL is refused from then on.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			id, err := t.AppOfClient(t.cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, published, err := t.DeleteApp(t.cmd.Context(), t.by, id)
			if err != nil {
				return err
			}
			t.late(published)
			return nil
		}),
	}
}

func appAllow() *cobra.Command {
	return &cobra.Command{
		Use: "allow URL", Short: "Allow the URL of a deleted app as a CLIENT_ID again; grants of the deleted app remain ended.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error { return t.AllowClient(t.cmd.Context(), args[0]) }),
	}
}
