package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// owners is a payment gateway at which a secret key such as sk_test_1_of_acct_2 belongs to acct_2. It records the keys used for
// cancellations.
type owners struct {
	app.Gateway

	used []domain.Secret
}

func (o *owners) Account(ctx context.Context, key domain.Secret) (id, country string, err error) {
	if _, account, ok := strings.Cut(string(key), "_of_"); ok {
		return account, "US", nil
	}
	return o.Gateway.Account(ctx, key)
}

func (o *owners) Cancel(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	o.used = append(o.used, a.SecretKey)
	return o.Gateway.Cancel(ctx, a, p)
}

// withOwners returns a world whose gateway knows several accounts.
func withOwners(t *testing.T) (*world, *owners) {
	t.Helper()
	w, gateway := newWorld(t), &owners{}
	w.around = func(g app.Gateway) app.Gateway {
		gateway.Gateway = g
		return gateway
	}
	w.engine = w.serve(w.DB.App)
	return w, gateway
}

// TestConnectAgain checks that an account that is connected again, whether or not it was disconnected, retains its id, its webhooks
// and its payments, which are read with the new keys. While it is connected, the keys of another account are refused.
func TestConnectAgain(t *testing.T) {
	t.Parallel()
	w, gateway := withOwners(t)
	ctx := pgtest.Ctx(t, caller.Test)
	first := w.connect(ctx)
	keys := []domain.Secret{"sk_test_another98765432", "sk_test_third98765432"}
	intents := []intent{w.post(ctx, w.booked(ctx, 100)).is(201).intent(), w.post(ctx, w.booked(ctx, 100)).is(201).intent()}
	for i, secret := range keys {
		other := domain.Keys{Publishable: "pk_test_2", Secret: "sk_test_1_of_acct_2", Webhook: "whsec_2"}
		if _, err := w.accounts.Connect(ctx, false, other); !errors.Is(err, domain.ErrConnected) {
			t.Errorf("another account: %v", err)
		}
		if i == 1 {
			if _, err := w.accounts.Disconnect(ctx); err != nil {
				t.Fatal(err)
			}
		}
		again, err := w.accounts.Connect(ctx, false, domain.Keys{Publishable: "pk_test_1", Secret: secret})
		if err != nil || again.ID != first.ID || again.DisconnectedAt != nil {
			t.Errorf("connected again: %+v, %v", again, err)
		}
		w.do(ctx, "POST", "/payment-intents/"+intents[i].ID+"/cancel", "").is(200)
	}
	if !slices.Equal(gateway.used, keys) {
		t.Errorf("keys %q, want %q", gateway.used, keys)
	}
	w.event(first.ID.String(), "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.canceled", `{"id":"pi_1"}`)).is(200)
}

// TestConnectWithoutWebhooks checks that an account without a secret for webhooks accepts none: an empty secret signs nothing.
func TestConnectWithoutWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	a, err := w.accounts.Connect(ctx, false, domain.Keys{Publishable: "pk_test_1", Secret: "sk_test_secret1234567"})
	if err != nil || a.Events != domain.EventsMissing {
		t.Errorf("%+v, %v", a, err)
	}
	w.event(a.ID.String(), "", time.Now(), eventBody("evt_1", "payment_intent.succeeded", `{"id":"pi_1"}`)).is(400, "malformed_request")
}

// TestRotatedSecretKey checks that a new secret key is accepted only if it works and belongs to the connected account. It changes
// nothing about webhooks.
func TestRotatedSecretKey(t *testing.T) {
	t.Parallel()
	w, _ := withOwners(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx)
	for _, secret := range []domain.Secret{"sk_test_wrong", "sk_test_1_of_acct_2"} {
		if _, err := w.accounts.Rotate(ctx, false, domain.Keys{Secret: secret}, time.Hour); err == nil {
			t.Errorf("%s is taken", secret)
		}
		if got, err := w.accounts.Show(ctx); err != nil || got.SecretLast4 != account.SecretLast4 || got.Version != account.Version {
			t.Errorf("%s: %+v, %v", secret, got, err)
		}
	}
	if got, err := w.accounts.Rotate(ctx, false, domain.Keys{Secret: "sk_test_another98765432"}, time.Hour); err != nil || got.SecretLast4 != "5432" {
		t.Errorf("%+v, %v", got, err)
	}
	w.ahead.Add(int64(2 * time.Hour))
	body := eventBody("evt_1", "payment_intent.succeeded", `{"id":"pi_1"}`)
	w.event(account.ID.String(), "whsec_1", time.Now(), body).is(200)
	w.event(account.ID.String(), "", time.Now(), body).is(400, "malformed_request")
}

// TestDisconnectedDuringAComparison checks that an account that is disconnected during a comparison shows no state of its events,
// because there is no change to report.
func TestDisconnectedDuringAComparison(t *testing.T) {
	t.Parallel()
	w, ctx, _ := withStandIn(t)
	w.Exec(`delete from gateway_webhook_secrets`)
	disconnected := 0
	l := &lister{Lister: w.standIn.stripe, before: func(domain.Stage, string) error {
		if disconnected++; disconnected > 1 {
			return nil
		}
		_, err := w.accounts.Disconnect(ctx)
		return err
	}}
	w.reconcile(l)
	if list := w.Events(); disconnected == 0 || len(list) != 2 {
		t.Errorf("%d events after %d lists: %v", len(list), disconnected, list)
	}
}
