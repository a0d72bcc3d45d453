package app_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/proto/internalapi"
	"holdfast.dev/services/identity/internal/domain"
)

func TestCreateTenant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made := h.tenant(t)
	for _, ref := range []string{made.ID.String(), made.Slug} {
		got, err := h.Tenant(t.Context(), ref)
		if err != nil || got.ID != made.ID || got.Policy != domain.DefaultPolicy() || got.Version != 1 || !got.CreatedAt.Equal(made.CreatedAt) {
			t.Errorf("%s: %+v: %v", ref, got, err)
		}
	}
	_, err := h.CreateTenant(t.Context(), cli, domain.Tenant{Slug: made.Slug, Name: "N", Timezone: "UTC", Currency: "EUR"})
	if !errors.Is(err, domain.ErrSlugTaken) {
		t.Errorf("the same slug again: %v", err)
	}
	_, err = h.CreateTenant(t.Context(), cli, domain.Tenant{Slug: "x", Name: "N", Timezone: "Mars", Currency: "EUR"})
	if e := apperr.As(err); e.Kind != apperr.Invalid || e.Fields[0].Field != "timezone" {
		t.Errorf("a wrong zone: %v", err)
	}
	if all, err := h.Tenants(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d tenants: %v", len(all), err)
	}
	for _, ref := range []string{"nobody", "", ids.New[ids.TenantPrefix]().String()} {
		if _, err := h.Tenant(t.Context(), ref); !errors.Is(err, domain.ErrTenantNotFound) {
			t.Errorf("tenant %q: %v", ref, err)
		}
	}
	h.holds(t, made, 1)
}

// A change reaches the gateways as the new version of each active key, in both modes, and the services as one
// event; the version a look-up answers is the one that was published.
func TestUpdateTenantTellsEverybody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, stranger := h.tenant(t), h.tenant(t)
	live, liveSecret := h.key(t, tenant.ID, "live")
	test, testSecret := h.key(t, tenant.ID, "test")
	gone, _ := h.key(t, tenant.ID, "test")
	foreign, _ := h.key(t, stranger.ID, "live")
	if _, _, err := h.RevokeKey(t.Context(), cli, gone.ID); err != nil {
		t.Fatal(err)
	}
	woken := 0
	h.Wake = func() { woken++ }
	got, published, err := h.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantChange{
		Timezone: new("Europe/Paris"), Currency: new("eur"), AutoConfirm: new(true), HoldTTLMinutes: new(new(30)),
	})
	if err != nil || !published || got.Version != 2 || got.Timezone != "Europe/Paris" || got.Currency != "EUR" || !got.AutoConfirm || *got.HoldTTLMinutes != 30 {
		t.Fatalf("updated %+v published %v: %v", got, published, err)
	}
	for secret, k := range map[string]domain.Key{liveSecret: live, testSecret: test} {
		p := h.lookup(t, secret)
		if p.Version != 3 || p.PolicyVersion != 2 || p.Timezone != "Europe/Paris" || p.Currency != "EUR" {
			t.Errorf("looked up %+v", p)
		}
		if state := h.state(t, k.ID); state != strconv.FormatInt(p.Version, 10) {
			t.Errorf("Redis says %q, want %d", state, p.Version)
		}
	}
	if state := h.state(t, gone.ID); state != domain.Revoked {
		t.Errorf("the revoked key: Redis says %q", state)
	}
	if state := h.state(t, foreign.ID); state != "" {
		t.Errorf("another tenant's key: Redis says %q", state)
	}
	if n := h.count(t, `select count(*) from key_signals`); n != 0 {
		t.Errorf("%d signals left", n)
	}
	if woken != 1 {
		t.Errorf("the relay was woken %d times", woken)
	}
	h.published(t, tenant.ID, 2)
	h.holds(t, tenant, 6)
}

// published fails the test unless the outbox holds one event of each version of the tenant from 2 to last.
func (h *house) published(t *testing.T, tenant ids.Tenant, last int64) {
	t.Helper()
	rows, err := h.owner.Query(t.Context(), `select message from outbox where topic = 'identity' and aggregate_id = $1 order by seq`, tenant.String())
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
			object.ID != tenant.String() || object.PolicyVersion != version {
			t.Errorf("event %d: %v", i, e)
		}
	}
}

func TestUpdateTenantWithoutChangeLeavesNoTrace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant(t)
	k, _ := h.key(t, tenant.ID, "live")
	for name, c := range map[string]domain.TenantChange{
		"empty": {}, "the same": {Timezone: new(tenant.Timezone), Currency: new("usd"), HoldTTLMinutes: new((*int)(nil))},
	} {
		got, published, err := h.UpdateTenant(t.Context(), cli, tenant.ID, c)
		if err != nil || !published || got.Version != 1 {
			t.Errorf("%s: version %d published %v: %v", name, got.Version, published, err)
		}
	}
	_, _, err := h.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantChange{Currency: new("nope")})
	if apperr.As(err).Kind != apperr.Invalid {
		t.Errorf("a wrong currency: %v", err)
	}
	_, _, err = h.UpdateTenant(t.Context(), cli, ids.New[ids.TenantPrefix](), domain.TenantChange{Name: new("x")})
	if !errors.Is(err, domain.ErrTenantNotFound) {
		t.Errorf("an unknown tenant: %v", err)
	}
	if state := h.state(t, k.ID); state != "" {
		t.Errorf("Redis says %q", state)
	}
	h.published(t, tenant.ID, 1)
	h.holds(t, tenant, 2)
}

func TestUpdateTenantWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant(t)
	k, _ := h.key(t, tenant.ID, "live")
	mend := h.breakRedis(t)
	for i, name := range []string{"One", "Two"} {
		got, published, err := h.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantChange{Name: &name})
		if err != nil || published || got.Version != int64(i+2) {
			t.Fatalf("update: version %d published %v: %v", got.Version, published, err)
		}
	}
	mend()
	if err := h.PublishInvalidations(t.Context(), ids.Tenant{}); err != nil {
		t.Fatal(err)
	}
	if state := h.state(t, k.ID); state != "4" {
		t.Errorf("Redis says %q, want the newest version 4", state)
	}
}
