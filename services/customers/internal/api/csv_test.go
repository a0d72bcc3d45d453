package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/memtest"
	"holdfast.dev/libs/pgtest"
)

const csvHeader = "id,object,name,first_name,last_name,email,phone,company,metadata,mode,version,created_at,updated_at,tax_id,billing_address.line1,billing_address.line2,billing_address.city,billing_address.state,billing_address.postal_code,billing_address.country,country,locale,erased_at,created_at_local,updated_at_local,erased_at_local\r\n"

func (w *world) csv(ctx context.Context, path string) []byte {
	w.T.Helper()
	a := w.do(ctx, "GET", path, "", "Accept: text/csv").is(200)
	if got := a.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		w.T.Errorf("%s is %q", path, got)
	}
	return a.Body
}

func (w *world) rows(ctx context.Context, path string) []json.RawMessage {
	w.T.Helper()
	return decode[struct{ Data []json.RawMessage }](w.do(ctx, "GET", path, "").is(200)).Data
}

func TestCustomersAsCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Test)
	if got := string(w.csv(ctx, "/customers")); got != csvHeader {
		t.Errorf("an empty list is %q", got)
	}
	w.create(other, `"company":"elsewhere"`)
	for _, fields := range []string{
		`"company":"=cmd|' /C calc'!A0","phone":"+1 555"`, `"company":"say \"x\", then leave","metadata":{"b":"1","a":"=2"}`,
		`"company":"Ünïcode 😀","metadata":["x","y"]`, `"company":"-5","last_name":"@home"`, `"company":"＝1","last_name":"＠home"`, `"last_name":" space"`, `"company":"same"`, `"company":"same"`,
	} {
		w.create(ctx, fields)
	}
	for _, query := range []string{"?", "?q=same", "?metadata[b]=1", "?email=ANN@example.com", "?email=nobody@example.com", "?created_before=2020-01-01T00:00:00Z"} {
		apitest.SameRows(t, w.csv(ctx, "/customers"+query), w.rows(ctx, "/customers"+query))
	}
	if got := string(w.csv(ctx, "/customers?q=say")); !strings.Contains(got, "\"say \"\"x\"\", then leave\"") || strings.Contains(got, "elsewhere") {
		t.Errorf("%q", got)
	}
	if got := string(w.csv(ctx, "/customers?q=cmd")); !strings.Contains(got, ",'=cmd|' /C calc'!A0,") || !strings.Contains(got, ",'+1 555,") {
		t.Errorf("%q", got)
	}
	if got := string(w.csv(ctx, "/customers?q=same")); strings.Count(got, "\r\n") != 3 {
		t.Errorf("%q", got)
	}
}

func TestWhatCSVDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	w.create(ctx, "")
	for path, field := range map[string]string{
		"/customers?limit=5": "limit", "/customers?cursor=abc": "cursor", "/customers?limit=5&cursor=abc": "limit",
		"/customers?nonsense=1": "nonsense", "/leads?limit=5": "limit", "/invoices?cursor=abc": "cursor",
	} {
		a := w.do(ctx, "GET", path, "", "Accept: text/csv").is(422, "invalid_request", field)
		if field == "limit" && !strings.Contains(string(a.Body), "Not allowed with text/csv") {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	w.do(ctx, "GET", "/customers?limit=5", "", "Accept: application/json, text/csv;q=0.5").is(200).list()
	w.do(ctx, "GET", "/customers?limit=5", "", "Accept: */*").is(200).list()
	for _, path := range []string{"/leads", "/invoices"} {
		if got := string(w.csv(ctx, path)); strings.Count(got, "\r\n") != 1 || !strings.HasPrefix(got, "id,object,") {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// many inserts n customers of ctx's caller.
func (w *world) many(ctx context.Context, n int) {
	w.T.Helper()
	c := caller.FromContext(ctx)
	w.Exec(`insert into customers (tenant_id, livemode, id, first_name, email, email_lower, company, created_at, updated_at)
		select $1, $2, gen_random_uuid(), 'Ann', 'ann@example.com', 'ann@example.com', repeat('x', 100),
			timestamptz '2026-01-01' + n * interval '1 second', timestamptz '2026-01-01' + n * interval '1 second'
		from generate_series(1, $3::int) n`, c.Tenant, c.Live(), n)
	w.Exec(`analyze customers`)
}

// fetch starts a download from a server with the router.
func (w *world) fetch(ctx context.Context, srv *httptest.Server, path string) *http.Response {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodGet, srv.URL+"/api/v1"+path, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/csv")
	w.Sign(ctx, req, "gateway")
	res, err := srv.Client().Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestLongCSV checks that a list of 100,000 rows is sent completely with little memory, that one more row is refused, and that an
// error in the middle closes the connection. With TEST_SCALE=full, it reads the list in both orders. It is not parallel, because it
// measures the memory of the whole process.
func TestLongCSV(t *testing.T) {
	const most = 100_000
	w := newWorld(t)
	srv := httptest.NewServer(w.engine)
	t.Cleanup(srv.Close)
	ctx := pgtest.Ctx(t, caller.Test)
	w.many(ctx, most)
	paths := []string{"/customers", "/customers?sort=updated_at"}
	if os.Getenv("TEST_SCALE") != "full" {
		paths = paths[:1]
	}
	for _, path := range paths {
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		memtest.Under(t, int64(before.HeapAlloc)+64<<20, func() {
			res := w.fetch(ctx, srv, path)
			lines, seen := bufio.NewScanner(res.Body), map[string]bool{}
			for lines.Scan() {
				seen[lines.Text()[:29]] = true
			}
			if err := lines.Err(); err != nil || len(seen) != most+1 {
				t.Errorf("%s: %d lines, %v", path, len(seen), err)
			}
		})
	}
	w.create(ctx, "")
	a := w.do(ctx, "GET", "/customers", "", "Accept: text/csv").is(422, "invalid_request", "created_after")
	if text := string(a.Body); !strings.Contains(text, "100,000") || !strings.Contains(text, "created_before") || !strings.Contains(text, "email") {
		t.Error(text)
	}
	res := w.fetch(ctx, srv, "/customers?created_before=2026-01-03T00:00:00Z")
	if _, err := io.CopyN(io.Discard, res.Body, 10); err != nil {
		t.Fatal(err)
	}
	w.Exec(`alter table customers rename column company to firm`)
	if n, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the broken download ended after %d bytes with %v", n, err)
	}
}

// TestDownloadsOfATenantAreBounded checks that the downloads of a tenant are limited, and that a client that disconnects frees its
// slot.
func TestDownloadsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewServer(w.engine)
	t.Cleanup(srv.Close)
	ctx := pgtest.Ctx(t, caller.Test)
	w.many(ctx, 60_000)
	var first *http.Response
	for i := range 8 {
		res := w.fetch(ctx, srv, "/customers")
		if res.StatusCode != 200 {
			t.Fatal(fmt.Sprint(i, res.Status))
		}
		first = res
	}
	a := w.do(ctx, "GET", "/customers", "", "Accept: text/csv").is(429, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("headers %v", a.Header)
	}
	w.do(pgtest.Ctx(t, caller.Test), "GET", "/customers", "", "Accept: text/csv").is(200)
	w.do(ctx, "GET", "/customers", "").is(200)
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Fatal(err)
	}
	if res := w.fetch(ctx, srv, "/customers"); res.StatusCode != 200 {
		t.Errorf("a place is free: %s", res.Status)
	}
}
