package command

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func appCommand() *cobra.Command {
	return group("app", "Manage OAuth apps.", appCreate(),
		command(spec{
			use: "register-cli", short: "Register the command line holdfast for the operators of every tenant, or renew its scopes.",
			flags: []flag{tenantFlag("slug or id of the tenant that the consent page names as the publisher")},
			run: func(ctx context.Context, t tool) error {
				return apps.changed(t)(t.RegisterCommandLine(ctx, t.by, t.tenant.ID))
			},
		}),
		appList(),
		command(spec{
			use: "show CLIENT_ID", short: "Show an app.",
			run: func(ctx context.Context, t tool) error {
				id, err := t.AppOfClient(ctx, t.args[0])
				if err != nil {
					return err
				}
				a, err := t.AppByID(ctx, id)
				return apps.one(t)(a.App, err)
			},
		}),
		appUpdate(), appVerify(),
		command(spec{
			use: "delete CLIENT_ID", silent: true,
			short: "Delete an app; its tokens stop working immediately, and a CLIENT_ID that is a URL is refused from then on.",
			run: func(ctx context.Context, t tool) error {
				id, err := t.AppOfClient(ctx, t.args[0])
				if err != nil {
					return err
				}
				_, published, err := t.DeleteApp(ctx, t.by, id)
				return t.late(published, err)
			},
		}),
		command(spec{
			use: "allow URL", short: "Allow the URL of a deleted app as a CLIENT_ID again; grants of the deleted app remain ended.", silent: true,
			run: func(ctx context.Context, t tool) error { return t.AllowClient(ctx, t.args[0]) },
		}))
}

var apps = table[domain.App, view.AdminApp]{
	view: view.AppForAdmin, head: []string{"CLIENT ID", "NAME", "PUBLISHED", "REDIRECT URIS"},
	row: func(_ domain.App, v view.AdminApp) []string {
		return []string{v.ID, v.Name, yes(v.Published), strings.Join(v.RedirectURIs, " ")}
	},
	single: func(_ domain.App, v view.AdminApp) [][]string {
		return [][]string{
			{"client_id", v.ID},
			{"name", v.Name},
			{"redirect URIs", strings.Join(v.RedirectURIs, " ")},
			{"scopes", strings.Join(v.Scopes, ",")},
			{"published", yes(v.Published)},
			{"verified", yes(v.VerifiedAt != nil)},
			{"browser origins", strings.Join(v.BrowserOrigins, " ")},
		}
	},
}

var registeredApps = table[domain.RegisteredApp, view.AdminRegisteredApp]{
	view: view.RegisteredAppForAdmin, head: []string{"CLIENT ID", "NAME", "CREATED", "LAST CONSENT", "REDIRECT URIS"},
	row: func(a domain.RegisteredApp, v view.AdminRegisteredApp) []string {
		return []string{cmp.Or(v.DocumentURL, v.ID), a.Name, timeText(&v.CreatedAt, ""), timeText(v.UsedAt, "never"), strings.Join(a.RedirectURIs, " ")}
	},
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// appFlags are the flags of create and update.
type appFlags struct {
	name, scopes       string
	redirects, origins []string
	published          bool
	leeway             int
}

// list returns the flags. needed is true if an app cannot be created without them.
func (f *appFlags) list(needed bool) []flag {
	return []flag{
		{&f.name, "name", "name shown on the consent page", needed},
		{&f.redirects, "redirect-uri", "redirect URI after consent; repeat the flag for several", needed},
		{&f.origins, "browser-origin", "origin of web pages that may use the app's tokens, such as https://app.example; repeat the flag for several, or pass \"\" for none", optional},
		{&f.scopes, "scopes", "scopes that the app may request: all, or a comma-separated list", needed},
		{&f.published, "published", "allow operators of every tenant to use the app", optional},
		{&f.leeway, "reuse-leeway", "number of seconds during which the previous refresh token remains valid, at most 10", optional},
	}
}

// given returns the settings on the command line.
func (f *appFlags) given(cmd *cobra.Command) app.Registration {
	return app.Registration{
		Name: given(cmd, "name", f.name), Scopes: given(cmd, "scopes", f.scopes), RedirectURIs: given(cmd, "redirect-uri", f.redirects),
		Origins:   given(cmd, "browser-origin", slices.DeleteFunc(f.origins, func(one string) bool { return one == "" })),
		Published: given(cmd, "published", f.published), ReuseLeeway: given(cmd, "reuse-leeway", f.leeway),
	}
}

func given[T any](cmd *cobra.Command, flag string, v T) patch.Field[T] {
	if cmd.Flags().Changed(flag) {
		return patch.Value(v)
	}
	return patch.Field[T]{}
}

func appCreate() *cobra.Command {
	var f appFlags
	return command(spec{
		use: "create", short: "Register an app of a tenant.", flags: append(f.list(required), tenantFlag("")),
		run: func(ctx context.Context, t tool) error {
			return apps.one(t)(t.CreateApp(ctx, t.by, t.tenant.ID, f.given(t.cmd)))
		},
	})
}

func appUpdate() *cobra.Command {
	var f appFlags
	return command(spec{
		use: "update CLIENT_ID", short: "Update an app; its tokens lose removed scopes immediately.", flags: f.list(optional),
		run: withID(domain.ParseAppID, func(ctx context.Context, t tool, id domain.AppID) error {
			return apps.changed(t)(t.UpdateApp(ctx, t.by, id, f.given(t.cmd)))
		}),
	})
}

func appList() *cobra.Command {
	var tenant string
	var registered bool
	cmd := command(spec{
		use: "list", short: "List a tenant's apps, or those that registered or describe themselves, newest first.",
		flags: []flag{
			{&tenant, "tenant", "slug or id of the tenant", optional},
			{&registered, "self-registered", "list the newest 1,000 apps that registered themselves, or whose CLIENT_ID is the URL of a document", optional},
		},
		run: func(ctx context.Context, t tool) error {
			if registered {
				return registeredApps.list(t)(t.RegisteredApps(ctx))
			}
			of, err := t.Tenant(ctx, tenant)
			if err != nil {
				return err
			}
			return apps.list(t)(t.Apps(ctx, of.ID))
		},
	})
	cmd.MarkFlagsMutuallyExclusive("tenant", "self-registered")
	cmd.MarkFlagsOneRequired("tenant", "self-registered")
	return cmd
}

func appVerify() *cobra.Command {
	var end bool
	return command(spec{
		use: "verify CLIENT_ID", short: "Record that you have verified an app and its publisher, so that its consent page has no warning.",
		flags: []flag{{&end, "end", "end the verification", optional}},
		run: withID(domain.ParseAppID, func(ctx context.Context, t tool, id domain.AppID) error {
			a, published, err := t.VerifyApp(ctx, t.by, id, !end)
			return apps.changed(t)(a.App, published, err)
		}),
	})
}
