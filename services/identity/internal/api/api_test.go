package api_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/proto"
	publicapi "holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"
	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// door is identity's HTTP door over a database of the test's own.
type door struct {
	t       *testing.T
	app     *app.App
	lastUse *app.LastUse
	db      *pgtest.DB
	keys    caller.Keys
	server  *httptest.Server
	check   *contracttest.Checker
}

func newDoor(t *testing.T) *door {
	t.Helper()
	return doorOn(t, pgtest.New(t, migrations.FS))
}

func doorOn(t *testing.T, db *pgtest.DB) *door {
	t.Helper()
	url := os.Getenv("TEST_REDIS_URL")
	if url == "" {
		t.Fatal("TEST_REDIS_URL is not set: run `make test`, or `bin/local with -- go test ./...`")
	}
	redis, err := redisx.Open(url, redisx.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	log := slog.New(slog.DiscardHandler)
	d := &door{
		t: t, db: db, keys: caller.Keys{}, check: contracttest.NewService(t, proto.OpenAPI),
		app:     &app.App{DB: db.App, Worker: db.Worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes, Now: time.Now, Log: log},
		lastUse: &app.LastUse{Worker: db.Worker, Log: log},
	}
	for _, peer := range []string{"gateway", "bookings", "customers"} {
		d.keys[peer] = []caller.Key{{ID: "k1", Secret: bytes.Repeat([]byte(peer[:1]), 32)}}
	}
	c, err := contract.Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	engine := httpx.NewEngine()
	err = (&api.API{
		DB: db.App, App: d.app, LastUse: d.lastUse, RateLimit: 77, Now: time.Now,
		Server: &httpx.Server{Service: "identity", Contract: c, Verifier: &caller.Verifier{Self: "identity", Keys: d.keys}},
	}).Mount(engine)
	if err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewServer(obs.Handler(log, nil, engine))
	t.Cleanup(d.server.Close)
	return d
}

// call sends a request that peer has signed for c, checks the answer against the contract and returns it.
func (d *door) call(peer string, c caller.Caller, method, path string, body any) (*http.Response, []byte) {
	d.t.Helper()
	var in io.Reader
	if body != nil {
		raw, ok := body.(string)
		if !ok {
			b, err := json.Marshal(body)
			if err != nil {
				d.t.Fatal(err)
			}
			raw = string(b)
		}
		in = strings.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.server.URL+path, in)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if peer != "" {
		c.RequestID = ids.New[ids.RequestPrefix]().String()
		signed, err := (&caller.Signer{From: peer, Keys: caller.Keys{"identity": d.keys[peer]}}).Sign(c, "identity", method, req.URL.EscapedPath(), time.Now())
		if err != nil {
			d.t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
	}
	res, err := d.server.Client().Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if strings.HasPrefix(path, httpx.Base) {
		d.check.Check(d.t, req, res, out)
	}
	return res, out
}

// want is call that must answer status; the body is decoded into T.
func want[T any](d *door, status int, peer string, c caller.Caller, method, path string, body any) T {
	d.t.Helper()
	res, raw := d.call(peer, c, method, path, body)
	var out T
	if res.StatusCode != status {
		d.t.Fatalf("%s %s as %s: %d %s, want %d", method, path, peer, res.StatusCode, raw, status)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		d.t.Fatalf("%s %s: %s: %v", method, path, raw, err)
	}
	return out
}

type failure struct {
	Error struct{ Code, Param string }
}

func (d *door) fails(status int, code, peer string, c caller.Caller, method, path string, body any) {
	d.t.Helper()
	if got := want[failure](d, status, peer, c, method, path, body); got.Error.Code != code {
		d.t.Errorf("%s %s as %s: code %q, want %q", method, path, peer, got.Error.Code, code)
	}
}

// keyed makes a tenant and a key of it, and returns the caller that the gateway would sign.
func (d *door) keyed(mode, scopes string) (caller.Caller, domain.Tenant, string) {
	d.t.Helper()
	by := domain.Origin{Actor: "cli", Source: "test"}
	tenant, err := d.app.CreateTenant(d.t.Context(), by, domain.Tenant{
		Slug: "s" + ids.New[ids.RequestPrefix]().String()[4:], Name: "Demo & <Co>", Timezone: "Europe/Berlin", Currency: "EUR",
	})
	if err != nil {
		d.t.Fatal(err)
	}
	k, secret, err := d.app.CreateKey(d.t.Context(), by, app.NewKey{Tenant: tenant.ID, Mode: mode, Name: "Till", Scopes: scopes})
	if err != nil {
		d.t.Fatal(err)
	}
	return caller.Caller{
		Tenant: tenant.ID, Timezone: tenant.Timezone, Currency: tenant.Currency, PolicyVersion: 1,
		Mode: caller.Mode(mode), Credential: k.ID.String(), Kind: "api_key", Scopes: k.Scopes,
	}, tenant, secret
}

func TestGetTenant(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	for _, mode := range []string{"live", "test"} {
		c, tenant, _ := d.keyed(mode, "all")
		got := want[publicapi.Tenant](d, 200, "gateway", c, "GET", "/api/v1/tenant", nil)
		if got.Id != tenant.ID.String() || got.Slug != tenant.Slug || got.Name != "Demo & <Co>" || string(got.Mode) != mode ||
			got.Timezone != "Europe/Berlin" || got.Currency != "EUR" || !got.Country.IsNull() ||
			got.BookingPolicy.AutoConfirm || !got.BookingPolicy.ConfirmOnDeposit || !got.BookingPolicy.HoldTtlMinutes.IsNull() ||
			got.Payments.Configured || !got.Payments.Provider.IsNull() {
			t.Errorf("%s: %+v", mode, got)
		}
		_, _, err := d.app.UpdateTenant(t.Context(), domain.Origin{}, tenant.ID, domain.TenantChange{HoldTTLMinutes: new(new(15)), Country: new(new("DE"))})
		if err != nil {
			t.Fatal(err)
		}
		got = want[publicapi.Tenant](d, 200, "gateway", c, "GET", "/api/v1/tenant", nil)
		if got.BookingPolicy.HoldTtlMinutes.MustGet() != 15 || got.Country.MustGet() != "DE" {
			t.Errorf("%s after the update: %+v", mode, got)
		}
	}
}

func TestGetMe(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c, tenant, _ := d.keyed("test", "read:bookings,write:bookings")
	got := want[publicapi.Me](d, 200, "gateway", c, "GET", "/api/v1/me", nil)
	if got.Id != c.Credential || got.Type != publicapi.ApiKey || got.Name.MustGet() != "Till" || got.Mode != "test" ||
		!slices.Equal(got.Scopes, c.Scopes) || got.TenantId != tenant.ID.String() || got.RateLimit.Limit != 77 || got.RateLimit.WindowSeconds != 60 {
		t.Errorf("%+v", got)
	}
}

func TestPublicOperationsRefuse(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c, _, _ := d.keyed("test", "all")
	stranger, _, _ := d.keyed("test", "all")
	for _, path := range []string{"/api/v1/tenant", "/api/v1/me"} {
		d.fails(401, "invalid_credential", "", c, "GET", path, nil)
		d.fails(422, "invalid_request", "gateway", c, "GET", path+"?expand=x", nil)
		d.fails(405, "method_not_allowed", "gateway", c, "DELETE", path, nil)
		nobody := c
		nobody.Tenant, nobody.Credential = ids.New[ids.TenantPrefix](), domain.NewKeyID().String()
		d.fails(401, "invalid_credential", "gateway", nobody, "GET", path, nil)
	}
	d.fails(404, "not_found", "gateway", c, "GET", "/api/v1/nothing", nil)
	for name, wrong := range map[string]func(*caller.Caller){
		"another tenant's key": func(c *caller.Caller) { c.Credential = stranger.Credential },
		"the other mode":       func(c *caller.Caller) { c.Mode = caller.Live },
		"no key":               func(c *caller.Caller) { c.Credential = "svc:bookings" },
	} {
		other := c
		wrong(&other)
		t.Log(name)
		d.fails(401, "invalid_credential", "gateway", other, "GET", "/api/v1/me", nil)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	const path = "/internal/v1/credentials/lookup"
	c, tenant, secret := d.keyed("live", "read:units")
	hash := apikey.Hash(secret)
	ask := internalapi.Lookup{Hash: hex.EncodeToString(hash[:])}
	zero := caller.Service("gateway", ids.Tenant{}, "")
	got := want[internalapi.Principal](d, 200, "gateway", zero, "POST", path, ask)
	if got.ID != c.Credential || got.Kind != "api_key" || got.Name != "Till" || got.Mode != "live" || !slices.Equal(got.Scopes, []string{"read:units"}) ||
		got.TenantID != tenant.ID.String() || got.Timezone != "Europe/Berlin" || got.Currency != "EUR" || got.PolicyVersion != 1 ||
		got.Version != 2 || got.Clock != nil || got.Revoked {
		t.Errorf("%+v", got)
	}
	if err := d.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.used() != 1 {
		t.Error("the use was not noted")
	}
	id, err := domain.ParseKeyID(c.Credential)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.app.RevokeKey(t.Context(), domain.Origin{}, id); err != nil {
		t.Fatal(err)
	}
	if got := want[internalapi.Principal](d, 200, "gateway", zero, "POST", path, ask); !got.Revoked || got.Version != 3 {
		t.Errorf("after the revocation %+v", got)
	}
	d.fails(404, "credential_not_found", "gateway", zero, "POST", path, internalapi.Lookup{Hash: strings.Repeat("0", 64)})
	for _, body := range []any{"", "{}", "x", `{"hash": 1}`, internalapi.Lookup{Hash: secret}, internalapi.Lookup{Hash: strings.Repeat("0", 62)}} {
		d.fails(422, "invalid_request", "gateway", zero, "POST", path, body)
	}
	for _, peer := range []string{"", "bookings", "customers"} {
		d.fails(401, "invalid_credential", peer, zero, "POST", path, ask)
	}
}

// Knocking with a revoked key is no use of it.
func TestLookupOfARevokedKeyIsNoUse(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c, _, secret := d.keyed("live", "all")
	id, err := domain.ParseKeyID(c.Credential)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.app.RevokeKey(t.Context(), domain.Origin{}, id); err != nil {
		t.Fatal(err)
	}
	hash := apikey.Hash(secret)
	ask := internalapi.Lookup{Hash: hex.EncodeToString(hash[:])}
	want[internalapi.Principal](d, 200, "gateway", caller.Service("gateway", ids.Tenant{}, ""), "POST", "/internal/v1/credentials/lookup", ask)
	if err := d.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.used() != 0 {
		t.Error("a revoked key counts as used")
	}
}

func (d *door) used() int {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.db.OwnerURL)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(d.t.Context(), `select count(*) from api_keys where last_used_at is not null`)
	if err != nil {
		d.t.Fatal(err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

func TestLookupTenant(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	_, tenant, _ := d.keyed("live", "all")
	path := "/internal/v1/tenants/" + tenant.ID.String()
	const peer = "bookings"
	for _, c := range []caller.Caller{caller.Service(peer, tenant.ID, caller.Test), caller.Service(peer, tenant.ID, caller.Live), caller.Service(peer, ids.Tenant{}, "")} {
		got := want[internalapi.Tenant](d, 200, peer, c, "GET", path, nil)
		if got.ID != tenant.ID.String() || got.Slug != tenant.Slug || got.PolicyVersion != 1 || !got.BookingPolicy.ConfirmOnDeposit || got.Country != nil {
			t.Errorf("%+v", got)
		}
	}
	someone := caller.Service("bookings", tenant.ID, caller.Live)
	for _, id := range []string{ids.New[ids.TenantPrefix]().String(), "tn_x", tenant.Slug, "x%2Fy"} {
		d.fails(404, "tenant_not_found", "bookings", someone, "GET", "/internal/v1/tenants/"+id, nil)
	}
	for _, peer := range []string{"", "gateway", "customers"} {
		d.fails(401, "invalid_credential", peer, someone, "GET", path, nil)
	}
}

// The internal paths are not under the public base, so the gateway has no route to them.
func TestContractHasNoInternalPath(t *testing.T) {
	t.Parallel()
	c, err := contract.Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Operations() {
		if strings.Contains(op.Path, "internal") {
			t.Errorf("%s is public at %s", op.ID, op.Path)
		}
	}
}
