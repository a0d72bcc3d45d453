package apitest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/pg"
)

// Request is a valid call of one operation; Path is under /api/v1.
type Request struct {
	Method, Path, Body string
	Headers            []Header
}

// Overloaded sends each request while another transaction holds all tables, until the lock time-out and until the
// statement time-out, and while no connection is free. Each response must be 503 unavailable with Retry-After. requests
// must contain every operation of the service except those in idle, which do not use the database.
func (w *Env) Overloaded(ctx context.Context, serve func(*pg.DB) http.Handler, requests []Request, idle ...string) {
	w.T.Helper()
	w.complete(requests, idle)
	const short = 30 * time.Millisecond
	const long = time.Minute
	//nolint:contextcheck // held until release, regardless of ctx
	release := w.Hold(`do $$ declare tables text; begin
		select string_agg(format('%I', relname), ', ') into tables from pg_class
		where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace;
		execute 'lock table ' || tables || ' in access exclusive mode';
	end $$`) //nolint:contextcheck // it ends with the test
	w.T.Run("lock", func(t *testing.T) {
		w.refused(t, ctx, serve(w.open(pg.Options{LockTimeout: short, StatementTimeout: long})), requests) //nolint:contextcheck // it ends with the test
	})
	w.T.Run("statement", func(t *testing.T) {
		w.refused(t, ctx, serve(w.open(pg.Options{LockTimeout: long, StatementTimeout: short})), requests) //nolint:contextcheck // it ends with the test
	})
	release()
	w.T.Run("connection", func(t *testing.T) {
		full := w.open(pg.Options{MaxConns: 1, AcquireTimeout: short}) //nolint:contextcheck // it ends with the test
		err := full.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			w.refused(t, ctx, serve(full), requests)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func (w *Env) refused(t *testing.T, ctx context.Context, engine http.Handler, requests []Request) {
	t.Helper()
	for _, r := range requests {
		a := w.Send(ctx, engine, "gateway", r.Method, "/api/v1"+r.Path, r.Body, r.Headers...)
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), `"unavailable"`) {
			t.Errorf("%s %s: got %d, Retry-After %q: %s", r.Method, r.Path, a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}
}

// complete fails the test when an operation of the service has no request.
func (w *Env) complete(requests []Request, idle []string) {
	w.T.Helper()
	spec, err := contract.Public()
	if err != nil {
		w.T.Fatal(err)
	}
	sent := slices.Clone(idle)
	for _, r := range requests {
		path, _, _ := strings.Cut(r.Path, "?")
		if op, _, _ := contracttest.Match(spec, r.Method, path); op != nil {
			sent = append(sent, op.ID)
		}
	}
	for _, op := range spec.For(w.service) {
		if !slices.Contains(sent, op.ID) {
			w.T.Errorf("%s has no request", op.ID)
		}
	}
}

// open creates a pool of the app role that ends with the test.
func (w *Env) open(opt pg.Options) *pg.DB {
	w.T.Helper()
	db, err := pg.Open(w.T.Context(), w.DB.AppURL, opt)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(db.Close)
	return db
}
