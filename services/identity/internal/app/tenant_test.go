package app_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

func TestCreateTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.tenant(t)
	for _, ref := range []string{created.ID.String(), created.Slug} {
		got, err := w.Tenant(t.Context(), ref)
		if err != nil || got.ID != created.ID || !reflect.DeepEqual(got.Policy, domain.DefaultPolicy()) || got.Version != 1 || !got.CreatedAt.Equal(created.CreatedAt) {
			t.Errorf("%s: %+v: %v", ref, got, err)
		}
	}
	in := domain.TenantPatch{Name: patch.Value("N"), Timezone: patch.Value("UTC"), Currency: patch.Value("EUR")}
	_, err := w.CreateTenant(t.Context(), cli, created.Slug, in)
	if !errors.Is(err, domain.ErrSlugTaken) {
		t.Errorf("the same slug again: %v", err)
	}
	in.Timezone = patch.Value("Mars")
	_, err = w.CreateTenant(t.Context(), cli, "x", in)
	if e := apperr.As(err); e.Kind != apperr.Invalid || e.Fields[0].Field != "timezone" {
		t.Errorf("a wrong zone: %v", err)
	}
	if all, err := w.Tenants(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d tenants: %v", len(all), err)
	}
	for _, ref := range []string{"unknown", "", ids.New[ids.TenantPrefix]().String()} {
		if _, err := w.Tenant(t.Context(), ref); !errors.Is(err, domain.ErrTenantNotFound) {
			t.Errorf("tenant %q: %v", ref, err)
		}
	}
	w.holds(t, created, 1)
}

// TestUpdateTenantReachesGatewaysAndServices checks that a change reaches the gateways as the new version of each active key, in
// both modes, and the services as one event. The version that a look-up returns is the published one.
func TestUpdateTenantReachesGatewaysAndServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	live, liveSecret := w.key(t, tenant.ID, "live")
	test, testSecret := w.key(t, tenant.ID, "test")
	revoked, _ := w.key(t, tenant.ID, "test")
	otherKey, _ := w.key(t, other.ID, "live")
	if _, _, err := w.RevokeKey(t.Context(), cli, revoked.ID); err != nil {
		t.Fatal(err)
	}
	woken := 0
	w.Wake = func() { woken++ }
	got, published, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{
		Timezone: patch.Value("Europe/Paris"), Currency: patch.Value("eur"), AutoConfirm: patch.Value(true), HoldTTLMinutes: patch.Value(30),
		LegalName: patch.Value("Demo GmbH"), InvoiceYear: patch.Value(true),
	})
	if err != nil || !published || got.Version != 2 || got.Timezone != "Europe/Paris" || got.Currency != "EUR" || !got.AutoConfirm || *got.HoldTTLMinutes != 30 || got.LegalName != "Demo GmbH" || !got.InvoiceYear {
		t.Fatalf("updated %+v published %v: %v", got, published, err)
	}
	for secret, k := range map[string]domain.Key{liveSecret: live, testSecret: test} {
		p := w.lookup(t, secret)
		if p.Version != 3 || p.PolicyVersion != 2 || p.Timezone != "Europe/Paris" || p.Currency != "EUR" {
			t.Errorf("looked up %+v", p)
		}
		if state := w.state(t, k.ID); state != strconv.FormatInt(p.Version, 10) {
			t.Errorf("Redis says %q, want %d", state, p.Version)
		}
	}
	if state := w.state(t, revoked.ID); state != domain.Revoked {
		t.Errorf("the revoked key: Redis says %q", state)
	}
	if state := w.state(t, otherKey.ID); state != "" {
		t.Errorf("another tenant's key: Redis says %q", state)
	}
	if n := w.count(t, `select count(*) from key_signals`); n != 0 {
		t.Errorf("%d invalidations left", n)
	}
	if woken != 1 {
		t.Errorf("the relay was woken %d times", woken)
	}
	w.published(t, tenant.ID, 2)
	w.holds(t, tenant, 6)
}

// published fails the test unless the outbox contains one event for each version of the tenant from 2 to last.
func (w *world) published(t *testing.T, tenant ids.Tenant, last int64) {
	t.Helper()
	rows, err := w.owner.Query(t.Context(), `select message from outbox where topic = 'identity' and aggregate_id = $1 order by seq`, tenant.String())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil || int64(len(messages)) != last-1 {
		t.Fatalf("%d events, want %d: %v", len(messages), last-1, err)
	}
	for i, m := range messages {
		e, err := outbox.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		var object internalapi.Tenant
		if err := json.Unmarshal(e.Object, &object); err != nil {
			t.Fatal(err)
		}
		version := int64(i + 2)
		if e.Type != "tenant.updated" || !e.Internal || e.ResourceVersion != version || e.ObjectId != tenant.String() ||
			object.ID != tenant.String() || object.PolicyVersion != version || object.InvoicePrefix != "INV-" {
			t.Errorf("event %d: %v", i, e)
		}
	}
}

func TestUpdateTenantWithoutChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, _ := w.key(t, tenant.ID, "live")
	for name, c := range map[string]domain.TenantPatch{
		"empty": {}, "the same": {Timezone: patch.Value(tenant.Timezone), Currency: patch.Value("usd"), HoldTTLMinutes: patch.Null[int]()},
	} {
		got, published, err := w.UpdateTenant(t.Context(), cli, tenant.ID, c)
		if err != nil || !published || got.Version != 1 {
			t.Errorf("%s: version %d published %v: %v", name, got.Version, published, err)
		}
	}
	_, _, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{Currency: patch.Value("nope")})
	if apperr.As(err).Kind != apperr.Invalid {
		t.Errorf("a wrong currency: %v", err)
	}
	_, _, err = w.UpdateTenant(t.Context(), cli, ids.New[ids.TenantPrefix](), domain.TenantPatch{Name: patch.Value("x")})
	if !errors.Is(err, domain.ErrTenantNotFound) {
		t.Errorf("an unknown tenant: %v", err)
	}
	if state := w.state(t, k.ID); state != "" {
		t.Errorf("Redis says %q", state)
	}
	w.published(t, tenant.ID, 1)
	w.holds(t, tenant, 2)
}

func TestUpdateTenantWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, _ := w.key(t, tenant.ID, "live")
	restore := w.breakRedis(t)
	for i, name := range []string{"One", "Two"} {
		got, published, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{Name: patch.Value(name)})
		if err != nil || published || got.Version != int64(i+2) {
			t.Fatalf("update: version %d published %v: %v", got.Version, published, err)
		}
	}
	restore()
	if err := w.PublishInvalidations(t.Context(), ids.Tenant{}); err != nil {
		t.Fatal(err)
	}
	if state := w.state(t, k.ID); state != "4" {
		t.Errorf("Redis says %q, want the newest version 4", state)
	}
}
