package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// gated is a Q in which statements that collect all matches wait for a value in goes. It counts how many run at the same time.
type gated struct {
	q           pg.Q
	goes        chan struct{}
	begun, most atomic.Int32
	now         atomic.Int32
}

// Query implements pg.Q.
func (g *gated) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "= any(array(") {
		g.begun.Add(1)
		g.most.Store(max(g.most.Load(), g.now.Add(1)))
		defer g.now.Add(-1)
		<-g.goes
	}
	return g.q.Query(ctx, sql, args...) //nolint:sqlclosecheck // the caller closes them
}

// TestDeepSearchesOfATenantAreLimited checks a tenant that sends many searches that must collect all their matches. One of them
// runs, a few wait, and the others are refused. Another tenant's search is not delayed.
func TestDeepSearchesOfATenantAreLimited(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	busy, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	fill(t, conn, busy)
	fill(t, conn, other)
	if _, err := conn.Exec(t.Context(), `analyze customers, customer_words, customer_metadata`); err != nil {
		t.Fatal(err)
	}
	most := page.DeepSearches.PerTenant + page.DeepSearches.Waiting
	sent := 4 * most
	old, r := store.CustomerFilter{Search: "old"}, page.Request{Limit: page.DefaultLimit}
	ctx := pgtest.CtxOf(t, busy, caller.Test)
	g := &gated{q: db.App.Read(ctx), goes: make(chan struct{})}
	var searches sync.WaitGroup
	var refused, found atomic.Int32
	for range sent {
		searches.Go(func() {
			list, err := store.Customers(ctx, g, old, r)
			switch {
			case err != nil && apperr.As(err).Kind == apperr.RateLimited:
				refused.Add(1)
			case err != nil:
				t.Error(err)
			case len(list.Items) == r.Limit && list.More:
				found.Add(1)
			default:
				t.Errorf("%d customers are found", len(list.Items))
			}
		})
	}
	for end := time.Now().Add(time.Minute); int(refused.Load()) < sent-most || g.begun.Load() == 0; {
		if time.Now().After(end) {
			close(g.goes)
			t.Fatalf("%d are under way, %d are refused", g.begun.Load(), refused.Load())
		}
		time.Sleep(time.Millisecond)
	}
	octx := pgtest.CtxOf(t, other, caller.Test)
	list, err := store.Customers(octx, db.App.Read(octx), old, r)
	if err != nil || len(list.Items) != r.Limit {
		t.Errorf("another tenant finds %d, %v", len(list.Items), err)
	}
	close(g.goes)
	searches.Wait()
	if g.most.Load() != 1 || found.Load() < 1 || int(found.Load()+refused.Load()) != sent {
		t.Errorf("%d are under way at once, %d found, %d refused", g.most.Load(), found.Load(), refused.Load())
	}
}

// TestASearchThatIsTooBroadSaysSo checks that a search that reaches the statement timeout responds with an error that explains what
// to do.
func TestASearchThatIsTooBroadSaysSo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fill(t, conn, tenant)
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.Customers(ctx, slow{tx}, store.CustomerFilter{Search: "old"}, page.Request{Limit: page.DefaultLimit})
		return err
	})
	if !errors.Is(err, page.ErrTooBroad) || !strings.Contains(err.Error(), page.ErrTooBroad.Message) {
		t.Errorf("got %v", err)
	}
}

// slow is a Q in which a statement that collects all matches times out immediately.
type slow struct{ pg.Tx }

// Query implements pg.Q.
func (s slow) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "= any(array(") {
		if _, err := s.Exec(ctx, `set local statement_timeout = '1ms'`); err != nil {
			return nil, err
		}
	}
	return s.Tx.Query(ctx, sql, args...)
}
