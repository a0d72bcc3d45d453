package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
)

// request returns a request of c at a time.
func request(c caller.Caller, at time.Time, change ...func(*domain.RequestLog)) domain.RequestLog {
	u := ids.New[ids.RequestPrefix]().UUID()
	first := ids.First[ids.RequestPrefix](at).UUID()
	copy(u[:6], first[:6])
	l := domain.RequestLog{
		TenantID: c.Tenant, Livemode: c.Live(), ID: ids.FromUUID[ids.RequestPrefix](u), Status: 201, Method: "POST", Route: "/bookings",
		Path: "/bookings", QueryNames: []string{}, CredentialID: "key_1", CredentialType: "api_key",
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

// insert writes requests and returns how many were new.
func insert(t *testing.T, db *pgtest.DB, list ...domain.RequestLog) (n int) {
	t.Helper()
	in(t, db, func(ctx context.Context, tx pg.Tx) (err error) {
		n, err = store.InsertRequestLogs(ctx, tx, list)
		return err
	})
	return n
}

// in runs fn in a transaction of the worker.
func in(t *testing.T, db *pgtest.DB, fn func(ctx context.Context, tx pg.Tx) error) {
	t.Helper()
	if err := db.Worker.SystemTx(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// maintain creates and drops partitions, and returns how many could not be dropped.
func maintain(t *testing.T, db *pgtest.DB, from, until time.Time) (remaining int) {
	t.Helper()
	in(t, db, func(ctx context.Context, tx pg.Tx) (err error) {
		remaining, err = store.MaintainPartitions(ctx, tx, from, until)
		return err
	})
	return remaining
}

// list returns the requests that the caller in ctx can read.
func list(t *testing.T, db *pgtest.DB, ctx context.Context, f store.Filter) []domain.RequestLog {
	t.Helper()
	rows, err := store.RequestLogs(ctx, db.App.Read(ctx), f, page.Request{Limit: 100}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return rows.Items
}

// query reads the first column of a statement as the owner.
func query[T any](t *testing.T, db *pgtest.DB, sql string, args ...any) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(sql, err)
	}
	return out
}
