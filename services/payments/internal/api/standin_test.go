package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/pgtest"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
)

const (
	standInControl = "a control token for tests"
	standInSecret  = "sk_test_demo12345678"
	standInPublic  = "pk_test_demo12345678"
)

// standInFolder contains the program of the stand-in once a test needs it. TestMain removes it.
var standInFolder string

// built builds the stand-in for Stripe once for all tests.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if standInFolder, err = os.MkdirTemp("", "local-stripe"); err != nil {
		return "", err
	}
	path := filepath.Join(standInFolder, "local-stripe")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = "../../../local/stripe"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the stand-in: %w: %s", err, out)
	}
	return path, nil
})

// standIn is the stand-in for Stripe, in a separate process, or Stripe itself.
type standIn struct {
	t      *testing.T
	url    string
	secret string // key of the operator
	stripe *peers.Stripe
}

// startStandIn starts a stand-in whose charges cost fees, with additional settings.
func startStandIn(t *testing.T, settings ...string) *standIn {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve")
	cmd.Env = append([]string{
		"LOCAL_STRIPE_HTTP_ADDR=127.0.0.1:0", "LOCAL_STRIPE_DATA_DIR=" + t.TempDir(), "LOCAL_STRIPE_CONTROL_TOKEN=" + standInControl,
		"LOCAL_STRIPE_TEST_SECRET_KEY=" + standInSecret, "LOCAL_STRIPE_TEST_PUBLISHABLE_KEY=" + standInPublic, "LOCAL_STRIPE_ASYNC_DELAY=1h",
	}, settings...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			base := "http://" + address
			return &standIn{t: t, url: base, secret: standInSecret, stripe: peers.NewStripe(base, 10*time.Second, 64)}
		}
	}
	t.Fatal("the stand-in does not start")
	return nil
}

// send sends a request and decodes the response.
func (s *standIn) send(method, path, token, contentType, body string, into any) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		s.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	return res.StatusCode
}

// control calls the control API.
func (s *standIn) control(path string, body map[string]any, into any) {
	s.t.Helper()
	text := &bytes.Buffer{}
	if err := json.NewEncoder(text).Encode(body); err != nil {
		s.t.Fatal(err)
	}
	if status := s.send("POST", "/_control/"+path, standInControl, "application/json", text.String(), into); status != 200 {
		s.t.Fatalf("%s: %d", path, status)
	}
}

// call calls Stripe's API with the operator's key and returns the status.
func (s *standIn) call(method, path string, form url.Values, into any) int {
	s.t.Helper()
	if method == "GET" {
		return s.send(method, path+"?"+form.Encode(), s.secret, "", "", into)
	}
	return s.send(method, path, s.secret, "application/x-www-form-urlencoded", form.Encode(), into)
}

// confirm pays an intent and returns the latest charge.
func (s *standIn) confirm(id, method string) string {
	s.t.Helper()
	form := url.Values{"payment_method": {method}, "return_url": {"https://example.com"}}
	if status := s.call("POST", "/v1/payment_intents/"+id+"/confirm", form, nil); status != 200 && status != 402 {
		s.t.Fatalf("confirm %s: %d", id, status)
	}
	var p struct {
		LatestCharge string `json:"latest_charge"`
	}
	s.call("GET", "/v1/payment_intents/"+id, nil, &p)
	return p.LatestCharge
}

// moved returns the sums of the stand-in's balance transactions by currency: net of fees, and the fees.
func (s *standIn) moved() (net, fees map[string]int64, count int) {
	s.t.Helper()
	var all struct {
		Movements []struct {
			Currency string
			Net, Fee int64
		} `json:"balance_transactions"`
	}
	if status := s.send("GET", "/_control/accounts/acct_1HoldfastDemo/snapshot", standInControl, "", "", &all); status != 200 {
		s.t.Fatalf("snapshot: %d", status)
	}
	net, fees = map[string]int64{}, map[string]int64{}
	for _, b := range all.Movements {
		code := strings.ToUpper(b.Currency)
		net[code] += domain.FromStripe(b.Net, code)
		fees[code] += domain.FromStripe(b.Fee, code)
	}
	return net, fees, len(all.Movements)
}

// withStandIn returns a world whose gateway is a stand-in.
func withStandIn(t *testing.T, settings ...string) (*world, context.Context, domain.Account) {
	t.Helper()
	w := newWorld(t)
	w.standIn = startStandIn(t, settings...)
	w.engine = w.serve(w.DB.App)
	ctx := pgtest.Ctx(t, caller.Test)
	a, err := w.accounts.Connect(ctx, false, domain.Keys{Publishable: standInPublic, Secret: standInSecret, Webhook: "whsec_1"})
	if err != nil {
		t.Fatal(err)
	}
	return w, ctx, a
}
