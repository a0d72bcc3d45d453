package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/supervise"
)

// stripeName is the name of the Stripe stand-in's process, port, and folder.
const stripeName = "stripe"

// stripeKey returns a key of the stand-in's demo account. kind is its prefix, such as pk_test.
func (w Wiring) stripeKey(kind string) string { return kind + "_" + w.Keys.Secret("stripe."+kind) }

func (w Wiring) stripeURL() string { return "http://" + w.address(stripeName) }

// stripeSettings returns the settings of the Stripe stand-in.
func (w Wiring) stripeSettings(data string) []string {
	vars := map[string]string{}
	for name, value := range map[string]string{
		"HTTP_ADDR": w.address(stripeName), "DATA_DIR": filepath.Join(data, stripeName), "CONTROL_TOKEN": w.Keys.Secret("stripe.control"),
		"TEST_SECRET_KEY": w.stripeKey("sk_test"), "TEST_PUBLISHABLE_KEY": w.stripeKey("pk_test"),
		"LIVE_SECRET_KEY": w.stripeKey("sk_live"), "LIVE_PUBLISHABLE_KEY": w.stripeKey("pk_live"),
	} {
		vars["LOCAL_STRIPE_"+name] = value
	}
	return Lines(vars)
}

// startStripe starts the Stripe stand-in and returns when it responds.
func (p *Platform) startStripe(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(p.data, stripeName), 0o700); err != nil {
		return err
	}
	err := p.group.Start(supervise.Spec{
		Name: stripeName, Path: p.binary("local-stripe"), Args: []string{"serve"}, Dir: p.Root,
		Env: append(append(inherited(), supervise.OwnerEnv+"="+p.Root), p.wiring().stripeSettings(p.data)...),
		Log: p.screen.PartLog(stripeName),
	})
	if err != nil {
		return err
	}
	if err := p.awaitService(ctx, stripeName); err != nil {
		return err
	}
	p.screen.Say("Stripe stand-in on %s", p.wiring().address(stripeName))
	return nil
}

// connectStripe connects the test account of the stand-in to a tenant, and sends the account's events to the gateway. Existing
// connections stay.
func (p *Platform) connectStripe(ctx context.Context, tenant string) error {
	payments, ok := proto.ServiceNamed("payments")
	if !ok {
		return nil
	}
	of := []string{"--tenant", tenant, "--mode", "test"}
	if _, err := p.tool(ctx, payments, append([]string{"gateway", "show"}, of...)...); err == nil {
		return nil
	}
	w := p.wiring()
	secret, err := p.secretFile("stripe-secret-key", w.stripeKey("sk_test"))
	if err != nil {
		return err
	}
	defer os.Remove(secret)
	out, err := p.tool(ctx, payments, append([]string{
		"gateway", "connect", "--publishable-key", w.stripeKey("pk_test"), "--secret-key-file", secret,
	}, of...)...)
	if err != nil {
		return fmt.Errorf("connecting the demo account: %w\n%s", err, out)
	}
	var connected struct {
		WebhookPath   string   `json:"webhook_path"`
		WebhookEvents []string `json:"webhook_events"`
	}
	if err := json.Unmarshal(out, &connected); err != nil {
		return fmt.Errorf("connecting the demo account: %w", err)
	}
	signed, err := w.registerEndpoint(ctx, w.publicURL()+connected.WebhookPath, connected.WebhookEvents)
	if err != nil {
		return fmt.Errorf("registering the demo account's webhooks: %w", err)
	}
	webhook, err := p.secretFile("stripe-webhook-secret", signed)
	if err != nil {
		return err
	}
	defer os.Remove(webhook)
	if out, err = p.tool(ctx, payments, append([]string{"gateway", "rotate", "--webhook-secret-file", webhook}, of...)...); err != nil {
		return fmt.Errorf("setting the webhook secret of the demo account: %w\n%s", err, out)
	}
	return nil
}

// secretFile writes a secret to a file that only this user can read.
func (p *Platform) secretFile(name, secret string) (string, error) {
	path := filepath.Join(p.Run, name)
	return path, os.WriteFile(path, []byte(secret), 0o600)
}

// registerEndpoint configures the stand-in to send events of the demo account in test mode to an address, and returns the secret
// that signs them.
func (w Wiring) registerEndpoint(ctx context.Context, address string, events []string) (secret string, err error) {
	form := url.Values{"url": {address}, "enabled_events[]": events}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.stripeURL()+"/v1/webhook_endpoints", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+w.stripeKey("sk_test"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var created struct {
		Secret string `json:"secret"`
	}
	if err := json.NewDecoder(res.Body).Decode(&created); err != nil {
		return "", err
	}
	if created.Secret == "" {
		return "", fmt.Errorf("%s without a secret", res.Status)
	}
	return created.Secret, nil
}
