package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
	"github.com/stripe/stripe-go/v76/webhook"
)

const (
	controlToken = "a control token for tests"
	demoAccount  = "acct_1HoldfastDemo"
)

// standIn is a stand-in that runs in the test's process.
type standIn struct {
	t      *testing.T
	url    string
	config config
	stop   func()
	*client.API
}

func testConfig(folder string) config {
	return config{
		Addr: "127.0.0.1:0", Data: folder, ControlToken: controlToken, AccountID: demoAccount, AccountCountry: "US", AccountCurrency: "usd",
		TestSecret: "sk_test_demo", TestPublishable: "pk_test_demo", LiveSecret: "sk_live_demo", LivePublishable: "pk_live_demo",
		AsyncDelay: 50 * time.Millisecond, KeyLifetime: 24 * time.Hour, WebhookTimeout: 5 * time.Second,
		WebhookRetries: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second},
	}
}

// start starts a stand-in, which stops at the end of the test.
func start(t *testing.T, change ...func(*config)) *standIn {
	t.Helper()
	c := testConfig(t.TempDir())
	for _, f := range change {
		f(&c)
	}
	return startWith(t, c)
}

func startWith(t *testing.T, c config) *standIn {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	address, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, c, func(a string) { address <- a }) }()
	s := &standIn{t: t, config: c}
	select {
	case a := <-address:
		s.url = "http://" + a
	case err := <-done:
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	s.API = s.with("sk_test_demo")
	return s
}

// with returns a stripe-go client with a key. The client never retries.
func (s *standIn) with(key string) *client.API {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(s.url), MaxNetworkRetries: stripe.Int64(0), HTTPClient: &http.Client{Timeout: 30 * time.Second},
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return client.New(key, &stripe.Backends{API: backend, Connect: backend, Uploads: backend})
}

// control calls the control API and decodes its response.
func (s *standIn) control(method, path string, body, into any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/_control/"+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+controlToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %s %s %v", method, path, resp.Status, got, err)
	}
	if into != nil {
		if err := json.Unmarshal(got, into); err != nil {
			s.t.Fatal(err)
		}
	}
}

// post sends a form and returns the status, headers, and body.
func (s *standIn) post(key, path, form string, header ...string) (int, http.Header, map[string]any) {
	s.t.Helper()
	return s.send(http.MethodPost, key, path, form, header...)
}

func (s *standIn) send(method, key, path, form string, header ...string) (int, http.Header, map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&body) // body stays nil if the response is not JSON
	return resp.StatusCode, resp.Header, body
}

// intent returns the parameters of an intent with an amount and a currency.
func intent(amount int64, currency string) *stripe.PaymentIntentParams {
	return &stripe.PaymentIntentParams{
		Amount: stripe.Int64(amount), Currency: stripe.String(currency),
		AutomaticPaymentMethods: &stripe.PaymentIntentAutomaticPaymentMethodsParams{
			Enabled: stripe.Bool(true),
		},
	}
}

// confirm confirms an intent with a test method.
func (s *standIn) confirm(id, method string) (*stripe.PaymentIntent, error) {
	return s.PaymentIntents.Confirm(id, &stripe.PaymentIntentConfirmParams{
		PaymentMethod: stripe.String(method), ReturnURL: stripe.String("https://shop.example/back"),
	})
}

// try creates an intent and confirms it with a test method.
func (s *standIn) try(p *stripe.PaymentIntentParams, method string) (*stripe.PaymentIntent, error) {
	s.t.Helper()
	pi, err := s.PaymentIntents.New(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.confirm(pi.ID, method)
}

// pay creates and confirms an intent and checks its final status.
func (s *standIn) pay(amount int64, currency, method string, want stripe.PaymentIntentStatus) *stripe.PaymentIntent {
	s.t.Helper()
	pi, err := s.try(intent(amount, currency), method)
	if err != nil || pi.Status != want {
		s.t.Fatalf("%s: %v, want %s (%v)", method, pi, want, err)
	}
	return pi
}

// charge returns the latest charge of an intent with its balance transaction and its refunds.
func (s *standIn) charge(intent string) *stripe.Charge {
	s.t.Helper()
	p := &stripe.PaymentIntentParams{}
	p.AddExpand("latest_charge.balance_transaction")
	p.AddExpand("latest_charge.refunds.data.balance_transaction")
	pi, err := s.PaymentIntents.Get(intent, p)
	if err != nil || pi.LatestCharge == nil {
		s.t.Fatalf("%+v %v", pi, err)
	}
	return pi.LatestCharge
}

// refused checks that err is Stripe's error with that status and code.
func refused(t *testing.T, err error, status int, code stripe.ErrorCode) stripe.Error {
	t.Helper()
	var e *stripe.Error
	if !errors.As(err, &e) || e.HTTPStatusCode != status || e.Code != code {
		t.Fatalf("error %v, want %d %s", err, status, code)
	}
	return *e
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// await waits until an intent has that status.
func (s *standIn) await(id string, status stripe.PaymentIntentStatus) *stripe.PaymentIntent {
	s.t.Helper()
	var pi *stripe.PaymentIntent
	until(s.t, id+" becomes "+string(status), func() bool {
		var err error
		pi, err = s.PaymentIntents.Get(id, nil)
		return err == nil && pi.Status == status
	})
	return pi
}

// receiver is a webhook endpoint that records the events with a valid signature.
type receiver struct {
	*httptest.Server
	secret string

	mu     sync.Mutex
	events []stripe.Event
	wrong  int
	refuse int // the number of requests that get a 500
}

// receive creates an endpoint of the account for all events.
func (s *standIn) receive(api *client.API, types ...string) *receiver {
	s.t.Helper()
	if len(types) == 0 {
		types = []string{"*"}
	}
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	s.t.Cleanup(r.Close)
	e, err := api.WebhookEndpoints.New(&stripe.WebhookEndpointParams{URL: stripe.String(r.URL), EnabledEvents: stripe.StringSlice(types)})
	if err != nil {
		s.t.Fatal(err)
	}
	r.mu.Lock()
	r.secret = e.Secret
	r.mu.Unlock()
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse > 0 {
		r.refuse--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	event, err := webhook.ConstructEvent(body, req.Header.Get("Stripe-Signature"), r.secret)
	if err != nil {
		r.wrong++
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.events = append(r.events, event)
}

// all returns the received events.
func (r *receiver) all() []stripe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// types returns the types of the events about an object, in the order in which they arrived.
func (r *receiver) types(t *testing.T, id string) []string {
	t.Helper()
	var list []string
	for _, e := range r.all() {
		if e.Data.Object["id"] == id || e.Data.Object["payment_intent"] == id {
			list = append(list, string(e.Type))
		}
	}
	return list
}
