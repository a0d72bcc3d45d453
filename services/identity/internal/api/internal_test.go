package api_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

const (
	lookup      = "/internal/v1/credentials/lookup"
	lookupBatch = "/internal/v1/credentials/lookup-batch"
)

// lookupOf returns the body that looks up a secret.
func lookupOf(secret string) string { return hashed(hashOf(secret)) }

func hashOf(secret string) string {
	hash := apikey.Hash(secret)
	return hex.EncodeToString(hash[:])
}

// batchOf returns the body that looks up several hashes.
func batchOf(kind string, hashes ...string) string {
	return fmt.Sprintf(`{"kind":%q,"hashes":["%s"]}`, kind, strings.Join(hashes, `","`))
}

func hashed(hash string) string { return fmt.Sprintf(`{"hash":%q}`, hash) }

func TestLookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, tenant, secret := w.keyed("live", "read:units")
	none := w.service("gateway", ids.Tenant{}, "")
	got := decode[internalapi.Principal](w.from(none, "gateway", "POST", lookup, lookupOf(secret)).is(200))
	if got.ID != caller.FromContext(ctx).Credential || got.Kind != "api_key" || got.Name != "Till" || got.Mode != "live" || !slices.Equal(got.Scopes, []string{"read:units"}) ||
		got.TenantID != tenant.ID.String() || got.Timezone != "Europe/Berlin" || got.Currency != "EUR" || got.PolicyVersion != 1 ||
		got.Version != 2 || got.Clock != nil || got.Revoked {
		t.Errorf("%+v", got)
	}
	if err := w.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.used() != 1 {
		t.Error("the use was not noted")
	}
	w.revoke(got.ID)
	if got := decode[internalapi.Principal](w.from(none, "gateway", "POST", lookup, lookupOf(secret)).is(200)); !got.Revoked || got.Version != 3 {
		t.Errorf("after the revocation %+v", got)
	}
	w.from(none, "gateway", "POST", lookup, hashed(strings.Repeat("0", 64))).is(404, "credential_not_found")
	for _, body := range []string{"{}", `{"hash": 1}`, hashed(secret), hashed(strings.Repeat("0", 62))} {
		w.from(none, "gateway", "POST", lookup, body).is(422, "invalid_request")
	}
	w.from(none, "gateway", "POST", lookup, "").is(400, "missing_content_type")
	w.from(none, "gateway", "POST", lookup, "x").is(400, "malformed_json")
	for _, peer := range []string{"", "bookings", "customers"} {
		w.from(none, peer, "POST", lookup, lookupOf(secret)).is(401, "invalid_credential")
	}
}

// TestLookupOfSeveralCredentials checks that a batch returns the principals of the credentials that exist, and records the use of the keys that
// are not revoked.
func TestLookupOfSeveralCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := w.service("gateway", ids.Tenant{}, "")
	expected := map[string]string{} // the ID of each hash
	var hashes []string
	for i := range 63 {
		ctx, _, secret := w.keyed([]string{"live", "test"}[i%2], "all")
		hash := hashOf(secret)
		expected[hash], hashes = caller.FromContext(ctx).Credential, append(hashes, hash)
	}
	revoked := expected[hashes[0]]
	w.revoke(revoked)
	hashes = slices.Insert(hashes, 7, strings.Repeat("0", 64))
	got := decode[internalapi.FoundCredentials](w.from(none, "gateway", "POST", lookupBatch, batchOf("api_key", hashes...)).is(200)).Data
	for _, one := range got {
		if one.Principal.ID != expected[one.Hash] || one.Principal.Revoked != (one.Principal.ID == revoked) {
			t.Errorf("%s: %+v", one.Hash, one.Principal)
		}
	}
	if len(got) != len(expected) {
		t.Errorf("%d of %d keys were found", len(got), len(expected))
	}
	if err := w.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.used(); n != len(expected)-1 {
		t.Errorf("the use of %d keys was recorded", n)
	}
	if got := decode[internalapi.FoundCredentials](w.from(none, "gateway", "POST", lookupBatch, batchOf("oauth", hashes...)).is(200)); got.Data == nil || len(got.Data) > 0 {
		t.Errorf("as access tokens: %+v", got)
	}
	for _, body := range []string{"{}", batchOf("api_key"), batchOf("session", hashes[0]), batchOf("api_key", "x"), batchOf("api_key", append(hashes, hashes[0])...)} {
		w.from(none, "gateway", "POST", lookupBatch, body).is(422, "invalid_request")
	}
	w.from(none, "gateway", "POST", lookupBatch+"-x", batchOf("api_key", hashes...)).is(404, "not_found") // a later gateway recognizes what this release lacks
	for _, peer := range []string{"", "bookings"} {
		w.from(none, peer, "POST", lookupBatch, batchOf("api_key", hashes...)).is(401, "invalid_credential")
	}
}

// TestLookupOfOrigins checks that only the gateway can look up which origins apps have registered.
func TestLookupOfOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tenant, _ := w.keyed("live", "all")
	_, err := w.app.CreateApp(t.Context(), domain.Origin{Actor: "cli", Source: "test"}, tenant.ID, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://app.example/"}), Origins: patch.Value([]string{"https://app.example"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	none := w.service("gateway", ids.Tenant{}, "")
	for origin, want := range map[string]bool{"https%3A%2F%2Fapp.example": true, "https%3A%2F%2Fevil.example": false, "": false} {
		if got := decode[internalapi.Origin](w.from(none, "gateway", "GET", "/internal/v1/browser-origins?origin="+origin, "").is(200)); got.Registered != want {
			t.Errorf("%q: %v", origin, got.Registered)
		}
	}
	for _, peer := range []string{"", "bookings"} {
		w.from(none, peer, "GET", "/internal/v1/browser-origins?origin=x", "").is(401, "invalid_credential")
	}
}

// TestLookupOfARevokedKeyIsNotRecorded checks that a request with a revoked key does not count as a use of it.
func TestLookupOfARevokedKeyIsNotRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, _, secret := w.keyed("live", "all")
	w.revoke(caller.FromContext(ctx).Credential)
	w.from(w.service("gateway", ids.Tenant{}, ""), "gateway", "POST", lookup, lookupOf(secret)).is(200)
	if err := w.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.used() != 0 {
		t.Error("a revoked key counts as used")
	}
}

func (w *world) revoke(key string) {
	w.T.Helper()
	id, err := domain.ParseKeyID(key)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, _, err := w.app.RevokeKey(w.T.Context(), domain.Origin{}, id); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) used() int {
	w.T.Helper()
	return w.Count(`select count(*) from api_keys where last_used_at is not null`)
}

func TestLookupTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tenant, _ := w.keyed("live", "all")
	path := "/internal/v1/tenants/" + tenant.ID.String()
	live := w.service("bookings", tenant.ID, caller.Live)
	for _, ctx := range []context.Context{live, w.service("bookings", tenant.ID, caller.Test), w.service("bookings", ids.Tenant{}, "")} {
		got := decode[internalapi.Tenant](w.from(ctx, "bookings", "GET", path, "").is(200))
		if got.ID != tenant.ID.String() || got.Slug != tenant.Slug || got.PolicyVersion != 1 || !got.BookingPolicy.ConfirmOnDeposit || got.Country != nil ||
			got.InvoicePrefix != "INV-" || got.InvoiceYear || got.LegalName+got.Address+got.TaxID != "" {
			t.Errorf("%+v", got)
		}
	}
	w.from(w.service("customers", tenant.ID, caller.Live), "customers", "GET", path, "").is(200)
	for _, id := range []string{ids.New[ids.TenantPrefix]().String(), "tn_x", tenant.Slug, "x%2Fy"} {
		w.from(live, "bookings", "GET", "/internal/v1/tenants/"+id, "").is(404, "tenant_not_found")
	}
	for _, peer := range []string{"", "gateway"} {
		w.from(live, peer, "GET", path, "").is(401, "invalid_credential")
	}
}

// TestOverloadOfInternalCalls checks that locked tables and statements that take too long also return 503 here.
func TestOverloadOfInternalCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, tenant, _ := w.keyed("test", "all")
	path := "/internal/v1/tenants/" + tenant.ID.String()
	w.Hold(`lock table tenants, api_keys in access exclusive mode`)
	const short = 50 * time.Millisecond
	for name, opt := range map[string]pg.Options{
		"lock":      {LockTimeout: short, StatementTimeout: time.Minute},
		"statement": {LockTimeout: time.Minute, StatementTimeout: short},
	} {
		impatient, err := pg.Open(t.Context(), w.DB.AppURL, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(impatient.Close)
		w.engine = w.serve(impatient)
		for _, a := range []response{
			w.from(w.service("gateway", ids.Tenant{}, ""), "gateway", "POST", lookup, hashed(strings.Repeat("ab", 32))),
			w.from(w.service("gateway", ids.Tenant{}, ""), "gateway", "POST", lookupBatch, batchOf("api_key", strings.Repeat("ab", 32))),
			w.from(ctx, "bookings", "GET", path, ""),
			w.from(ctx, "bookings", "PUT", path+"/test-clock", `{"now":"2030-01-01T00:00:00Z"}`),
		} {
			if a.is(503, "unavailable"); a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: 503 without Retry-After: %s", name, a.Body)
			}
		}
	}
}
