package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

const gatewayAccount = "/internal/v1/gateway-account"

// managing returns a context in which the console calls for an operator who manages payments.
func managing(ctx context.Context, scopes ...string) context.Context {
	c := caller.FromContext(ctx)
	c.Credential, c.Kind, c.Scopes = "op_1", "operator", scopes
	return caller.With(ctx, c)
}

func (w *world) console(ctx context.Context, peer, method, body string) response {
	w.T.Helper()
	return response{w.Send(ctx, w.engine, peer, method, gatewayAccount, body)}
}

const testKeys = `{"publishable_key":"pk_test_1","secret_key":"sk_test_secret1234567","webhook_secret":"whsec_secret12345"}`

// TestGatewayAccountForTheConsole checks that the console connects, reads and disconnects the account of its tenant and mode, and
// sees no secret.
func TestGatewayAccountForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := managing(pgtest.Ctx(t, caller.Test), "payments:write")
	live := managing(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "payments:write")
	stranger := managing(pgtest.Ctx(t, caller.Test), "payments:write")
	w.console(ctx, "console", "GET", "").is(404, "gateway_account_not_found")
	w.console(ctx, "console", "DELETE", "").is(404, "gateway_account_not_found")
	a := w.console(ctx, "console", "POST", testKeys).is(200)
	connected := apitest.Decode[internalapi.ConnectedAccount](a.Response)
	if !strings.HasPrefix(connected.ID, "ga_") || connected.Provider != "stripe" || !connected.Connected || connected.PublishableKey == nil || *connected.PublishableKey != "pk_test_1" ||
		connected.WebhookPath != "/gateway/stripe/"+connected.ID || connected.Account == "" || connected.CreatedAt.IsZero() {
		t.Errorf("%+v", connected)
	}
	read := w.console(ctx, "console", "GET", "").is(200)
	for _, body := range []string{string(a.Body), string(read.Body)} {
		if strings.Contains(body, "secret") || strings.Contains(body, "4567") {
			t.Errorf("a secret is shown: %s", body)
		}
	}
	if got := apitest.Decode[internalapi.ConnectedAccount](read.Response); got.ID != connected.ID || !got.Connected {
		t.Errorf("%+v", got)
	}
	for _, other := range []context.Context{live, stranger} {
		w.console(other, "console", "GET", "").is(404, "gateway_account_not_found")
		w.console(other, "console", "DELETE", "").is(404, "gateway_account_not_found")
	}
	for _, e := range w.Events() {
		if e.GetType() != "gateway_account.updated" || e.GetActor() != "op_1" {
			t.Errorf("%v", e)
		}
	}
	w.console(ctx, "console", "DELETE", "").is(204)
	w.console(ctx, "console", "GET", "").is(404, "gateway_account_not_found")
	for body, field := range map[string]string{
		strings.ReplaceAll(testKeys, "sk_test", "sk_live"): "secret_key", strings.ReplaceAll(testKeys, "pk_test", "x"): "publishable_key",
		strings.ReplaceAll(testKeys, "whsec", "x"): "webhook_secret", `{"publishable_key":"pk_test_x","secret_key":1}`: "secret_key", `{"secret_key":"sk_test_x"}`: "publishable_key",
	} {
		w.console(ctx, "console", "POST", body).is(422, "invalid_request", field)
	}
	w.console(ctx, "console", "POST", "").is(400, "missing_content_type")
	w.console(live, "console", "POST", testKeys).is(422, "invalid_request", "secret_key")
}

// TestGatewayAccountWithoutPermission checks that, without the scope or for another service, nothing is returned or done.
func TestGatewayAccountWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for _, method := range []string{"GET", "POST", "DELETE"} {
		for _, scopes := range [][]string{nil, {"payments:read"}, {"payments:write2", "write:bookings"}} {
			w.console(managing(ctx, scopes...), "console", method, testKeys).is(403, "insufficient_scope")
		}
		for _, peer := range []string{"gateway", "customers"} {
			w.console(managing(ctx, "payments:write"), peer, method, testKeys).is(401, "invalid_credential")
		}
	}
	w.console(managing(ctx, "payments:write"), "console", "GET", "").is(200)
}

// refusing is a payment gateway that does not accept secret keys.
type refusing struct {
	app.Gateway
	err error
}

func (r refusing) Account(context.Context, domain.Secret) (id, country string, err error) {
	return "", "", r.err
}

// TestConnectWithARefusedKey checks that a key that the payment gateway refuses is a 422, and that a missing response of the
// gateway is a 502.
func TestConnectWithARefusedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := managing(pgtest.Ctx(t, caller.Test), "payments:write")
	connectWith := func(err error) response {
		w.around = func(g app.Gateway) app.Gateway { return refusing{g, err} }
		w.engine = w.serve(w.DB.App)
		return w.console(ctx, "console", "POST", testKeys)
	}
	connectWith(&domain.RefusedError{}).is(422, "invalid_request", "secret_key")
	connectWith(errors.New("no response")).is(502, "payment_intent_failed")
	w.console(ctx, "console", "GET", "").is(404, "gateway_account_not_found")
}
