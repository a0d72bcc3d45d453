package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/peers"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/migrations"
)

// listing returns Stripe's list of the intents pi_0, pi_1, … as fast as possible.
func listing(rows []domain.IntentID, tenant ids.Tenant) http.Handler {
	const pageSize = 100
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/payment_intents") {
			_, _ = w.Write([]byte(`{"object":"list","has_more":false,"data":[]}`))
			return
		}
		first := 0
		if after := r.URL.Query().Get("starting_after"); after != "" {
			n, _ := strconv.Atoi(strings.TrimPrefix(after, "pi_"))
			first = n + 1
		}
		var page strings.Builder
		last := min(first+pageSize, len(rows))
		fmt.Fprintf(&page, `{"object":"list","has_more":%t,"data":[`, last < len(rows))
		for n := first; n < last; n++ {
			if n > first {
				page.WriteByte(',')
			}
			fmt.Fprintf(&page, `{"id":"pi_%[1]d","object":"payment_intent","amount":1000,"amount_received":1000,"currency":"usd","status":"succeeded",
				"metadata":{"holdfast_payment":%[2]q,"holdfast_tenant":%[3]q},"payment_method_types":["card"],"created":1700000000,
				"latest_charge":{"id":"ch_%[1]d","object":"charge","amount":1000,"amount_captured":1000,"amount_refunded":0,"captured":true,
				"balance_transaction":"txn_%[1]d","currency":"usd","status":"succeeded","paid":true,"billing_details":{"address":{}},
				"payment_method_details":{"type":"card","card":{"brand":"visa","last4":"4242","exp_month":1,"exp_year":2030}}}}`, n, rows[n], tenant)
		}
		page.WriteString(`]}`)
		_, _ = w.Write([]byte(page.String()))
	})
}

// BenchmarkReconciler compares an account with 100,000 intents (BENCH_INTENTS), all of which are equal on both sides.
func BenchmarkReconciler(b *testing.B) {
	size := 100_000
	if text := os.Getenv("BENCH_INTENTS"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	db := pgtest.New(b, migrations.FS)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		b.Fatal(err)
	}
	tenant, accounts := ids.New[ids.TenantPrefix](), store.Accounts{Box: box}
	ctx := caller.With(context.Background(), caller.Service("payments", tenant, caller.Test))
	account := domain.Account{ID: ids.New[domain.AccountPrefix](), Provider: domain.Stripe, Account: "acct_1", Country: "US", SecretKey: "sk_test_1", Events: domain.EventsOK}
	if err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := accounts.Insert(ctx, tx, account)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	rows := fillIntents(b, db, tenant, account.ID, size)
	server := httptest.NewServer(listing(rows, tenant))
	b.Cleanup(server.Close)
	now := time.Now()
	stripe := peers.NewStripe(server.URL, 10*time.Second, 64)
	intents := &app.Intents{DB: db.App, Accounts: accounts, Gateway: stripe, Wake: func() {}, Now: func() time.Time { return now }}
	reconciler := &app.Reconciler{
		Intents: intents, Refunds: &app.Refunds{Intents: intents, Wake: func() {}}, Lister: stripe, Worker: db.Worker,
		Gateways: &app.Accounts{DB: db.App, Store: accounts, Gateway: stripe, Now: intents.Now}, Wake: func() {},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Interval: time.Hour,
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := reconciler.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Hour + time.Second)
	}
	b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "intents/s")
	var runs int
	if err := db.Worker.SystemTx(b.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
		runs, err = pg.One(ctx, tx, pgx.RowTo[int], nil, `select count(*)::int from gateway_reconciliations r where r.finished_at > $1 and r.cursor = ''`, now.Add(-2*time.Hour))
		return err
	}); err != nil || runs != 1 {
		b.Errorf("%d accounts were compared, %v", runs, err)
	}
}

// fillIntents writes paid intents with their movements, and returns their rows in the order of the gateway's list.
func fillIntents(b *testing.B, db *pgtest.DB, tenant ids.Tenant, account domain.AccountID, size int) []domain.IntentID {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), db.OwnerURL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{
		`insert into payment_intents (tenant_id, livemode, id, gateway_id, account_id, status, amount, currency, received, booking_id,
			capture_method, created_at, updated_at, attempt, attempted_at)
		select '%[1]x', false, gen_random_uuid(), 'pi_' || n, '%[2]x', 'succeeded', 1000, 'USD', 1000, gen_random_uuid(), 'automatic', now(), now(), 1, now()
		from generate_series(0, %[3]d - 1) n`,
		`insert into ledger_entries (tenant_id, livemode, account_id, movement, ledger_account, currency, amount, kind, object, intent_id, moved_at)
		select p.tenant_id, p.livemode, p.account_id, 'txn_' || substr(p.gateway_id, 4), s.account, 'USD', s.amount, 'charge', 'ch_1', p.id, now()
		from payment_intents p, (values ('gateway_balance', 1000), ('payments', -1000)) s (account, amount)`,
		`analyze`,
	} {
		if strings.Contains(sql, "%") {
			sql = fmt.Sprintf(sql, tenant.UUID(), account.UUID(), size)
		}
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	found, err := conn.Query(b.Context(), `select id from payment_intents order by substr(gateway_id, 4)::int`)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowTo[domain.IntentID])
	if err != nil || len(rows) != size {
		b.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}
