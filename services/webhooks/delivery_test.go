package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/egress"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/peers"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// arrival is one delivery in the form that a receiver gets.
type arrival struct {
	header http.Header
	body   []byte
}

// Every function of docs/guides/webhooks.md and Stripe's library accept a real delivery while a secret is being rotated, with both
// secrets, for 300 seconds, and reject a changed byte.
func TestReceiversVerifyRealDeliveries(t *testing.T) {
	t.Parallel()
	came := make(chan arrival, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- arrival{r.Header, body}
	}))
	defer srv.Close()
	secrets := deliver(t, srv.URL, `{"id":"cu_1","name":"<b>&amp; 🎉 \u00e9","metadata":{}}`, `{"id":"cu_2","metadata":[]}`)
	for range 2 {
		got := <-came
		header := got.header.Get("Service-Signature")
		var at int64
		if _, err := fmt.Sscanf(header, "t=%d,", &at); err != nil || strings.Count(header, "v1=") != 2 {
			t.Fatalf("%q: %v", header, err)
		}
		changed := []byte(strings.Replace(string(got.body), "cu_", "cx_", 1))
		for name, verify := range verifiers(t) {
			for _, secret := range secrets {
				if !verify(header, got.body, secret, at) || !verify(header, got.body, secret, at+300) {
					t.Errorf("%s refuses what was sent: %s %s", name, header, got.body)
				}
				if verify(header, got.body, secret, at+301) || verify(header, changed, secret, at) {
					t.Errorf("%s accepts what is late or changed", name)
				}
			}
			if verify(header, got.body, domain.NewSecret(), at) {
				t.Errorf("%s accepts another secret", name)
			}
		}
		for _, secret := range secrets {
			if err := webhook.ValidatePayloadWithTolerance(got.body, header, secret, domain.Tolerance); err != nil {
				t.Errorf("Stripe's library: %v", err)
			}
		}
		if webhook.ValidatePayloadWithTolerance(changed, header, secrets[0], domain.Tolerance) == nil {
			t.Error("Stripe's library accepts a changed byte")
		}
	}
}

// deliver delivers events about these objects to url, and returns the endpoint's two secrets.
func deliver(t *testing.T, url string, objects ...string) []string {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	c := caller.FromContext(pgtest.Ctx(t, caller.Test))
	c.Scopes = proto.Scopes
	ctx := caller.With(t.Context(), c)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := egress.NewGuard("", []string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	sender := peers.NewSender(guard)
	t.Cleanup(sender.Close)
	d := &app.Dispatcher{
		Worker: db.Worker, Box: box, Sender: sender, Log: slog.New(slog.DiscardHandler), Metrics: app.NewMetrics(nil),
		Breaker: true, MaxConcurrency: 16, MaxBytes: 64 << 20, BatchBytes: 8 << 20, Now: time.Now, Jitter: func() float64 { return 0 }, WakeRelay: func() {},
	}
	endpoints := &app.Endpoints{DB: db.App, Box: box, Guard: guard, Queue: &store.Queue{Wake: d.Wake}, Now: time.Now}
	var created domain.EndpointWithSecret
	var secrets []string
	use := func(ctx context.Context, use func(ctx context.Context, tx pg.Tx) (domain.EndpointWithSecret, error)) error {
		return db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			created, err = use(ctx, tx)
			secrets = append(secrets, created.Secret)
			return err
		})
	}
	in := domain.EndpointPatch{URL: patch.Value(url), EventTypes: patch.Value([]string{domain.Every})}
	write, err := endpoints.Prepare(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	err = use(ctx, func(ctx context.Context, tx pg.Tx) (domain.EndpointWithSecret, error) {
		return endpoints.Create(ctx, tx, write)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = use(ctx, func(ctx context.Context, tx pg.Tx) (domain.EndpointWithSecret, error) {
		return endpoints.Rotate(ctx, tx, created.ID, time.Hour, httpx.Match{})
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	intake := &app.Intake{
		DB: db.App, Worker: db.Worker, Queue: &store.Queue{Wake: d.Wake}, Notifier: &app.Notifier{}, BatchBytes: 8 << 20, Now: time.Now, Contract: spec,
	}
	for _, object := range objects {
		err := intake.Ingest(ctx, []domain.Event{{
			ID: ids.New[ids.EventPrefix](), Tenant: c.Tenant, Type: "customer.created", ObjectID: "cu_1", Version: 1,
			Object: json.RawMessage(object), Previous: json.RawMessage(`{}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return secrets
}
