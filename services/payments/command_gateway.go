package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
	"holdfast.dev/services/payments/internal/store"
)

// toolSettings contains the settings of the gateway command, a subset of Config.
type toolSettings struct {
	DatabaseURL    string `env:"DATABASE_URL,required,notEmpty" secret:"url"`             // URL of the database in the role <db>_app, under row-level security
	Pooler         bool   `env:"DATABASE_POOLER"`                                         // true: DATABASE_URL is the address of a pooler in transaction mode
	EncryptionKeys string `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…; the first key encrypts
	StripeURL      string `env:"STRIPE_URL" envDefault:"https://api.stripe.com"`          // URL of Stripe's API, without /v1
}

// rotationOverlap is how long webhooks can still be signed with the previous secret.
const rotationOverlap = 24 * time.Hour

func gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gateway", Short: "Connect operators' payment gateway accounts.",
		Long: `Connect operators' accounts at Stripe, the payment gateway.

Secrets are never passed as arguments. They are read from the environment (STRIPE_SECRET_KEY,
STRIPE_WEBHOOK_SECRET), from files (--secret-key-file, --webhook-secret-file), or from the
terminal.`,
	}
	for _, sub := range []*cobra.Command{
		gatewayVerb("connect", "Connect an account, or replace the keys of the connected account.", connect),
		gatewayVerb("show", "Show the connected account.", show),
		gatewayVerb("rotate", "Replace the keys of the connected account; webhooks signed with the previous secret are accepted for a day.", rotate),
		gatewayVerb("disconnect", "Disconnect the account; existing payments are still tracked.", disconnect),
	} {
		cmd.AddCommand(sub)
	}
	return cmd
}

// gateway is one running command.
type gateway struct {
	*app.Accounts
	cmd  *cobra.Command
	live bool
}

// gatewayVerb returns a command on the account of a tenant in a mode.
func gatewayVerb(use, short string, run func(ctx context.Context, g gateway) (domain.Account, error)) *cobra.Command {
	var tenant, mode string
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "id of the tenant, tn_…")
	f.StringVar(&mode, "mode", "test", "test or live")
	if use == "connect" || use == "rotate" {
		f.String("publishable-key", "", "the account's publishable key, pk_…")
		f.String("secret-key-file", "", "file with the account's secret key")
		f.String("webhook-secret-file", "", "file with the signing secret of the webhook endpoint")
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, err := asTenant(cmd.Context(), tenant, mode)
		if err != nil {
			return err
		}
		var s toolSettings
		if err := service.Load(&s); err != nil {
			return err
		}
		accounts, closeAll, err := openAccounts(ctx, s)
		if err != nil {
			return err
		}
		defer closeAll()
		a, err := run(ctx, gateway{Accounts: accounts, cmd: cmd, live: mode == string(caller.Live)})
		if err != nil {
			return err
		}
		body, err := contract.Encode(map[string]any{
			"id": a.ID.String(), "provider": a.Provider, "account": a.Account, "country": a.Country, "mode": mode,
			"publishable_key": a.PublishableKey, "secret_key_last4": a.SecretLast4, "connected": a.DisconnectedAt == nil,
			"webhook_path": "/gateway/stripe/" + a.ID.String(), "webhook_events": peers.WebhookEvents,
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), string(body))
		return err
	}
	return cmd
}

// asTenant returns the context of a command that acts for a tenant in a mode.
func asTenant(ctx context.Context, tenant, mode string) (context.Context, error) {
	id, err := ids.Parse[ids.TenantPrefix](tenant)
	if err != nil {
		return nil, errors.New("--tenant must be the id of a tenant, tn_…; `identity tenant list` shows the ids")
	}
	if mode != string(caller.Live) && mode != string(caller.Test) {
		return nil, errors.New("--mode must be test or live")
	}
	c := caller.Service("payments", id, caller.Mode(mode))
	c.Credential = "cli"
	return caller.With(ctx, c), nil
}

func openAccounts(ctx context.Context, s toolSettings) (*app.Accounts, func(), error) {
	box, err := crypt.NewBox(s.EncryptionKeys)
	if err != nil {
		return nil, nil, err
	}
	db, err := pg.Open(ctx, s.DatabaseURL, pg.Options{MaxConns: 2, Background: true, Pooler: s.Pooler})
	if err != nil {
		return nil, nil, err
	}
	return &app.Accounts{
		DB: db, Store: store.Accounts{Box: box}, Gateway: peers.NewStripe(s.StripeURL, stripeTimeout, 1), Now: time.Now,
	}, db.Close, nil
}

func connect(ctx context.Context, g gateway) (domain.Account, error) {
	keys, err := g.keys(true)
	if err != nil {
		return domain.Account{}, err
	}
	return g.Connect(ctx, g.live, keys)
}

func show(ctx context.Context, g gateway) (domain.Account, error) { return g.Show(ctx) }

func rotate(ctx context.Context, g gateway) (domain.Account, error) {
	keys, err := g.keys(false)
	if err != nil {
		return domain.Account{}, err
	}
	return g.Rotate(ctx, g.live, keys, rotationOverlap)
}

func disconnect(ctx context.Context, g gateway) (domain.Account, error) { return g.Disconnect(ctx) }

// keys reads the keys and prompts on the terminal for missing ones. Only the secret key can be required.
func (g gateway) keys(required bool) (domain.Keys, error) {
	publishable, _ := g.cmd.Flags().GetString("publishable-key")
	none := "unchanged"
	if required {
		none = "none"
	}
	question := "Secret key (sk_… or rk_…): "
	if !required {
		question = "Secret key (sk_… or rk_…, empty: unchanged): "
	}
	secret, err := g.secret("secret-key-file", "STRIPE_SECRET_KEY", question, required)
	if err != nil {
		return domain.Keys{}, err
	}
	webhook, err := g.secret("webhook-secret-file", "STRIPE_WEBHOOK_SECRET", "Signing secret of the webhook endpoint (whsec_…, empty: "+none+"): ", false)
	return domain.Keys{Publishable: publishable, Secret: domain.Secret(secret), Webhook: domain.Secret(webhook)}, err
}

// secret reads a secret from a file, the environment or the terminal.
func (g gateway) secret(flag, env, question string, required bool) (string, error) {
	if path, _ := g.cmd.Flags().GetString(flag); path != "" {
		raw, err := os.ReadFile(path)
		return strings.TrimSpace(string(raw)), err
	}
	if v := os.Getenv(env); v != "" {
		return v, nil
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		if !required {
			return "", nil
		}
		return "", fmt.Errorf("set %s or pass --%s: there is no terminal for input", env, flag)
	}
	fmt.Fprint(g.cmd.ErrOrStderr(), question)
	raw, err := term.ReadPassword(in)
	fmt.Fprintln(g.cmd.ErrOrStderr())
	return strings.TrimSpace(string(raw)), err
}
