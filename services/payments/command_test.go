package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/platform"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers/peerstest"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

func newBox(t *testing.T, keys string) *crypt.Box {
	t.Helper()
	box, err := crypt.NewBox(keys)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func newAccounts(t *testing.T, db *pgtest.DB, keys string) *app.Accounts {
	t.Helper()
	return &app.Accounts{DB: db.App, Store: store.Accounts{Box: newBox(t, keys)}, Gateway: &peerstest.Gateway{}, Now: time.Now}
}

func keysOf(mode caller.Mode, n int) domain.Keys {
	return domain.Keys{
		Publishable: fmt.Sprintf("pk_%s_%d", mode, n), Secret: domain.Secret(fmt.Sprintf("sk_%s_%d", mode, n)), Webhook: domain.Secret(fmt.Sprintf("whsec_%d", n)),
	}
}

var (
	oldKey   = "old:" + strings.Repeat("ab", 32)
	freshKey = "new:" + strings.Repeat("cd", 32)
)

// TestResealCommand checks that the old key is no longer needed after the command. The secrets of all accounts, including
// disconnected ones, open with only the new key, and have not changed.
func TestResealCommand(t *testing.T) {
	t.Parallel()
	const tenants = 110 // more than one batch
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	accounts := newAccounts(t, db, oldKey)
	created := map[context.Context]domain.Account{}
	for i := range tenants {
		mode := caller.Test
		if i%2 == 0 {
			mode = caller.Live
		}
		ctx := pgtest.Ctx(t, mode)
		a, err := accounts.Connect(ctx, mode == caller.Live, keysOf(mode, i))
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if _, err := accounts.Disconnect(ctx); err != nil {
				t.Fatal(err)
			}
		}
		created[ctx] = a
	}
	settings := platform.ResealSettings{WorkerDatabaseURL: db.WorkerURL, EncryptionKeys: freshKey + "," + oldKey}
	for range 2 { // the second run finds nothing to do
		if err := platform.Reseal(t.Context(), settings, store.ResealKeys); err != nil {
			t.Fatal(err)
		}
	}
	after := store.Accounts{Box: newBox(t, freshKey)}
	for ctx, a := range created {
		got, err := after.Account(ctx, db.App.Read(ctx), a.ID)
		if err != nil || got.SecretKey != a.SecretKey {
			t.Errorf("%s: %v", a.ID, err)
		}
		secrets, err := after.WebhookSecrets(ctx, db.App.Read(ctx), a.ID, time.Now())
		if want := strings.Replace(string(a.SecretKey), "sk_"+string(caller.FromContext(ctx).Mode), "whsec", 1); err != nil || len(secrets) != 1 || string(secrets[0]) != want {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
	settings.EncryptionKeys = "other:" + strings.Repeat("ef", 32)
	if err := platform.Reseal(t.Context(), settings, store.ResealKeys); err == nil || strings.Count(err.Error(), "no key opens") != 2 {
		t.Errorf("with a key that opens none: %v", err)
	}
}

// TestLostEncryptionKeys checks that, with lost encryption keys, an account can be shown, disconnected and given new keys. Only
// operations that need its key fail until then.
func TestLostEncryptionKeys(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(ctx context.Context, a *app.Accounts) (domain.Account, error){
		"connect": func(ctx context.Context, a *app.Accounts) (domain.Account, error) {
			return a.Connect(ctx, false, keysOf(caller.Test, 2))
		},
		"rotate": func(ctx context.Context, a *app.Accounts) (domain.Account, error) {
			return a.Rotate(ctx, false, keysOf(caller.Test, 2), time.Hour)
		},
		"disconnect and connect": func(ctx context.Context, a *app.Accounts) (domain.Account, error) {
			if _, err := a.Disconnect(ctx); err != nil {
				return domain.Account{}, err
			}
			return a.Connect(ctx, false, keysOf(caller.Test, 2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, migrations.FS)
			pgtest.Scoped(t, db)
			ctx := pgtest.Ctx(t, caller.Test)
			before, err := newAccounts(t, db, oldKey).Connect(ctx, false, keysOf(caller.Test, 1))
			if err != nil {
				t.Fatal(err)
			}
			rekeyed := newAccounts(t, db, freshKey)
			if got, err := rekeyed.Show(ctx); err != nil || got.ID != before.ID || got.SecretLast4 != before.SecretLast4 {
				t.Errorf("show: %+v, %v", got, err)
			}
			if _, err := rekeyed.Store.Account(ctx, db.App.Read(ctx), before.ID); err == nil {
				t.Error("the key was opened")
			}
			if _, err := rekeyed.Rotate(ctx, false, domain.Keys{Webhook: "whsec_3"}, time.Hour); err == nil {
				t.Error("rotate has sealed a key that it does not have")
			}
			after, err := mend(ctx, rekeyed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rekeyed.Store.Account(ctx, db.App.Read(ctx), after.ID)
			if err != nil || got.SecretKey != "sk_test_2" {
				t.Errorf("%v", err)
			}
			secrets, err := rekeyed.Store.WebhookSecrets(ctx, db.App.Read(ctx), after.ID, time.Now())
			if err != nil || len(secrets) != 1 || secrets[0] != "whsec_2" {
				t.Errorf("%d webhook secrets, %v", len(secrets), err)
			}
		})
	}
}

// TestDisconnectRetainsTheKey checks that a disconnected account retains its key, so that its operations in progress can be
// completed.
func TestDisconnectRetainsTheKey(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx, accounts := pgtest.Ctx(t, caller.Test), newAccounts(t, db, oldKey)
	a, err := accounts.Connect(ctx, false, keysOf(caller.Test, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := accounts.Store.Account(ctx, db.App.Read(ctx), a.ID); err != nil || got.SecretKey != "sk_test_1" {
		t.Errorf("%v", err)
	}
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := accounts.Store.ConnectedForUpdate(ctx, tx)
		return err
	})
	if err == nil {
		t.Error("it is still connected")
	}
}

// TestConnectAgain checks that an account that is connected again is the same one. Earlier payments are read with the new keys, and
// its webhooks have the same path and secret. Another account gets another row, and connecting it leaves the first one unchanged.
func TestConnectAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx, accounts := pgtest.Ctx(t, caller.Test), newAccounts(t, db, oldKey)
	first, err := accounts.Connect(ctx, false, keysOf(caller.Test, 1))
	if err != nil {
		t.Fatal(err)
	}
	again := func(gateway app.Gateway, n int) domain.Account {
		t.Helper()
		if _, err := accounts.Disconnect(ctx); err != nil {
			t.Fatal(err)
		}
		accounts.Gateway = gateway
		keys := keysOf(caller.Test, n)
		keys.Webhook = ""
		a, err := accounts.Connect(ctx, false, keys)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	same, other := accounts.Gateway, otherAccount{accounts.Gateway}
	if got := again(same, 2); got.ID != first.ID || got.DisconnectedAt != nil {
		t.Errorf("%+v", got)
	}
	second := again(other, 3)
	if second.ID == first.ID || second.Account == first.Account {
		t.Errorf("%+v", second)
	}
	read := func(id domain.AccountID) string {
		t.Helper()
		a, err := accounts.Store.Account(ctx, db.App.Read(ctx), id)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(string(a.SecretKey), " ", a.DisconnectedAt == nil)
	}
	if a, b := read(first.ID), read(second.ID); a != "sk_test_2 false" || b != "sk_test_3 true" {
		t.Errorf("%q, %q", a, b)
	}
	if got := again(same, 4); got.ID != first.ID || read(first.ID) != "sk_test_4 true" || read(second.ID) != "sk_test_3 false" {
		t.Errorf("%+v", got)
	}
	secrets, err := accounts.Store.WebhookSecrets(ctx, db.App.Read(ctx), first.ID, time.Now())
	if err != nil || len(secrets) != 1 || secrets[0] != "whsec_1" {
		t.Errorf("%d secrets, %v", len(secrets), err)
	}
}

// otherAccount is a gateway whose keys all belong to another account.
type otherAccount struct{ app.Gateway }

func (otherAccount) Account(context.Context, domain.Secret) (id, country string, err error) {
	return "acct_other", "US", nil
}

// terminal replaces the standard input of the process with a terminal and types into it.
func terminal(t *testing.T, typed string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = slave
	t.Cleanup(func() {
		os.Stdin = before
		_, _ = slave.Close(), master.Close()
	})
	if _, err := master.WriteString(typed); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsAreTyped checks that both secrets can be typed at a terminal, unless the environment or a file contains them. Without
// a terminal, only the required one is reported as missing.
func TestSecretsAreTyped(t *testing.T) {
	newGateway := func() (gateway, *bytes.Buffer) {
		cmd, out := &cobra.Command{}, &bytes.Buffer{}
		cmd.Flags().String("publishable-key", "pk_test_1", "")
		cmd.Flags().String("secret-key-file", "", "")
		cmd.Flags().String("webhook-secret-file", "", "")
		cmd.SetErr(out)
		return gateway{cmd: cmd}, out
	}
	t.Setenv("STRIPE_SECRET_KEY", "")
	t.Setenv("STRIPE_WEBHOOK_SECRET", "")
	for _, c := range []struct {
		typed, env      string
		required        bool
		secret, webhook domain.Secret
	}{
		{"sk_test_typed\nwhsec_typed\n", "", true, "sk_test_typed", "whsec_typed"},
		{"sk_test_typed\n\n", "", true, "sk_test_typed", ""},
		{"\nwhsec_typed\n", "", false, "", "whsec_typed"},
		{"whsec_typed\n", "sk_test_env", true, "sk_test_env", "whsec_typed"},
	} {
		t.Run(c.typed, func(t *testing.T) {
			t.Setenv("STRIPE_SECRET_KEY", c.env)
			terminal(t, c.typed)
			g, out := newGateway()
			keys, err := g.keys(c.required)
			if err != nil || keys.Secret != c.secret || keys.Webhook != c.webhook {
				t.Errorf("%q, %q, %v", string(keys.Secret), string(keys.Webhook), err)
			}
			if strings.Contains(out.String(), "typed") {
				t.Errorf("the secret is shown: %s", out)
			}
		})
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = null
	defer func() {
		os.Stdin = before
		_ = null.Close()
	}()
	g, _ := newGateway()
	if _, err := g.keys(true); err == nil || !strings.Contains(err.Error(), "STRIPE_SECRET_KEY") {
		t.Errorf("%v", err)
	}
	if keys, err := g.keys(false); err != nil || keys.Webhook != "" {
		t.Errorf("%v", err)
	}
}
