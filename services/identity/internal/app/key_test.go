package app_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

func TestCreateKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		k, secret := w.key(t, tenant.ID, string(mode))
		if got, ok := apikey.Valid(secret); !ok || got != mode {
			t.Errorf("secret of mode %q, valid %v; want %s", got, ok, mode)
		}
		p := w.lookup(t, secret)
		if p.KeyID != k.ID || p.TenantID != tenant.ID || p.Livemode != (mode == caller.Live) || p.Revoked ||
			p.Version != 2 || p.PolicyVersion != 1 || p.Timezone != "America/New_York" || p.Currency != "USD" ||
			p.Name != "a key" || !slices.Equal(p.Scopes, proto.Scopes) {
			t.Errorf("%s: looked up %+v", mode, p)
		}
	}
	w.holds(t, tenant, 3)
	keys, err := w.Keys(t.Context(), tenant.ID)
	if err != nil || len(keys) != 2 || keys[0].CreatedAt.Before(keys[1].CreatedAt) {
		t.Errorf("keys %v: %v", keys, err)
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	for name, c := range map[string]struct {
		in   app.NewKey
		want string
	}{
		"mode":   {app.NewKey{Tenant: tenant.ID, Mode: "prod", Scopes: "all"}, "invalid_request"},
		"scope":  {app.NewKey{Tenant: tenant.ID, Mode: "live", Scopes: "read:all"}, "invalid_request"},
		"name":   {app.NewKey{Tenant: tenant.ID, Mode: "live", Scopes: "all", Name: "\x00"}, "invalid_request"},
		"tenant": {app.NewKey{Tenant: ids.New[ids.TenantPrefix](), Mode: "live", Scopes: "all"}, "tenant_not_found"},
	} {
		_, secret, err := w.CreateKey(t.Context(), cli, c.in)
		if apperr.As(err).Code != c.want || secret != "" {
			t.Errorf("%s: %v with secret %q, want %s and none", name, err, secret, c.want)
		}
	}
	w.holds(t, tenant, 1)
}

// TestCapOfKeys checks that the last place is taken once, regardless of the number of parallel requests. A revoked key frees its
// place. Each mode has its own cap.
func TestCapOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	revoked, _ := w.key(t, tenant.ID, "live")
	w.exec(t, `insert into api_keys (tenant_id, livemode, id, name, hash, scopes, version, created_at)
		select $1, true, gen_random_uuid(), '', sha256(n::text::bytea), '{}', 1, now() from generate_series(1, $2) n`,
		tenant.ID, domain.KeyPlaces.Most-2)
	in := app.NewKey{Tenant: tenant.ID, Mode: "live", Scopes: "all"}
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, _, errs[i] = w.CreateKey(t.Context(), cli, in) })
	}
	group.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
		} else if e := apperr.As(err); !errors.Is(err, quota.ErrReached) || e.Fields[0].Field != "name" {
			t.Errorf("%v", err)
		}
	}
	if created != 1 {
		t.Errorf("%d got the last place", created)
	}
	w.key(t, tenant.ID, "test")
	if _, _, err := w.RevokeKey(t.Context(), cli, revoked.ID); err != nil {
		t.Fatal(err)
	}
	w.key(t, tenant.ID, "live")
	if _, _, err := w.CreateKey(t.Context(), cli, in); !errors.Is(err, quota.ErrReached) {
		t.Errorf("one more: %v", err)
	}
}

func TestRevokeTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, secret := w.key(t, tenant.ID, "live")
	first, published, err := w.RevokeKey(t.Context(), cli, k.ID)
	if err != nil || !published || first.RevokedAt == nil || first.Version != 2 {
		t.Fatalf("revoke: %+v published %v: %v", first, published, err)
	}
	if got := w.state(t, k.ID); got != domain.Revoked {
		t.Fatalf("Redis says %q when revoke returns, want the tombstone", got)
	}
	if ttl := w.redis.TTL(t.Context(), w.stateKey(t, k.ID)).Val(); ttl < 23*time.Hour {
		t.Errorf("the tombstone stays %s, want a day", ttl)
	}
	if p := w.lookup(t, secret); !p.Revoked || p.Version != 3 {
		t.Errorf("looked up %+v, want revoked in version 3", p)
	}
	w.redis.Del(t.Context(), w.stateKey(t, k.ID)) // like a Redis that lost its data
	second, published, err := w.RevokeKey(t.Context(), cli, k.ID)
	if err != nil || !published || !second.RevokedAt.Equal(*first.RevokedAt) || second.Version != 2 {
		t.Fatalf("again: %+v published %v: %v", second, published, err)
	}
	if got := w.state(t, k.ID); got != domain.Revoked {
		t.Errorf("Redis says %q after the second, want the tombstone again", got)
	}
	w.holds(t, tenant, 3) // the second created no record
	if _, _, err := w.RevokeKey(t.Context(), cli, domain.NewKeyID()); !errors.Is(err, domain.ErrKeyNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestTombstoneIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, secret := w.key(t, tenant.ID, "test")
	restore := w.breakRedis(t)
	_, published, err := w.RevokeKey(t.Context(), cli, k.ID)
	if err != nil || published {
		t.Fatalf("revoke without Redis: published %v: %v; want done but not published", published, err)
	}
	if !w.lookup(t, secret).Revoked || w.state(t, k.ID) != "" {
		t.Fatal("want the key revoked and nothing in Redis yet")
	}
	if err := w.PublishInvalidations(t.Context(), ids.Tenant{}); err == nil {
		t.Fatal("publishing without Redis succeeded")
	}
	if w.count(t, `select count(*) from key_signals`) != 1 {
		t.Fatal("the invalidation was lost")
	}
	restore()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.RetryPublish(ctx) }()
	for w.count(t, `select count(*) from key_signals`) > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.state(t, k.ID); got != domain.Revoked {
		t.Fatalf("Redis says %q, want the tombstone", got)
	}
}

// TestPublishIgnoresLateVersions checks that a version that arrives late overwrites neither a tombstone nor a newer version.
func TestPublishIgnoresLateVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	key, _ := w.key(t, tenant.ID, "test")
	id := key.ID
	for _, step := range []struct{ published, want string }{
		{"9", "9"}, {"10", "10"}, {"9", "10"}, {"10", "10"}, {domain.Revoked, domain.Revoked}, {"11", domain.Revoked}, {domain.Revoked, domain.Revoked},
	} {
		if err := w.Redis.Publish(t.Context(), []domain.Invalidation{{TenantID: tenant.ID, KeyID: id, Value: step.published}}); err != nil {
			t.Fatal(err)
		}
		if got := w.state(t, id); got != step.want {
			t.Fatalf("after %s Redis says %s, want %s", step.published, got, step.want)
		}
	}
}

// TestRevokeDuringTenantChanges checks changes of the tenant during revocations, in any order. Each key must end with its
// tombstone, and the chain must contain each change once.
func TestRevokeDuringTenantChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	keys := make([]domain.Key, 8)
	for i := range keys {
		keys[i], _ = w.key(t, tenant.ID, []string{"live", "test"}[i%2])
	}
	var wg sync.WaitGroup
	for i, k := range keys {
		wg.Go(func() {
			if _, _, err := w.RevokeKey(t.Context(), cli, k.ID); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, _, err := w.UpdateTenant(t.Context(), cli, tenant.ID, domain.TenantPatch{HoldTTLMinutes: patch.Value(i + 1)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := w.PublishInvalidations(t.Context(), tenant.ID); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if got := w.state(t, k.ID); got != domain.Revoked {
			t.Errorf("key %s: Redis says %q, want the tombstone", k.ID, got)
		}
	}
	w.holds(t, tenant, 1+8+8+8)
}

func TestLastUseIsCoarse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, _ := w.key(t, tenant.ID, "live")
	other, _ := w.key(t, tenant.ID, "test")
	l := &app.LastUse{Worker: w.Worker, Log: w.Log}
	start := time.Now().UTC().Truncate(time.Microsecond)
	used := func(at time.Time) time.Time {
		t.Helper()
		l.Note(k.ID, at)
		if err := l.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := caller.With(t.Context(), caller.Caller{Tenant: tenant.ID, Mode: caller.Live})
		now, err := store.Key(ctx, w.DB.Read(ctx), k.ID)
		if err != nil || now.LastUsedAt == nil || now.Version != 1 {
			t.Fatalf("%+v: %v", now, err)
		}
		return *now.LastUsedAt
	}
	for _, step := range []struct{ at, want time.Duration }{{0, 0}, {59 * time.Second, 0}, {time.Minute, time.Minute}, {time.Second, time.Minute}} {
		if got := used(start.Add(step.at)); !got.Equal(start.Add(step.want)) {
			t.Errorf("used at +%s: noted +%s, want +%s", step.at, got.Sub(start), step.want)
		}
	}
	if n := w.count(t, `select count(*) from api_keys where id = $1 and last_used_at is not null`, other.ID); n != 0 {
		t.Error("another key counts as used")
	}
}

// TestLastUseSurvivesAFailedWrite checks that while the database is unavailable, recorded uses are retained and newer ones take
// precedence. The end of Run writes the rest.
func TestLastUseSurvivesAFailedWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	k, _ := w.key(t, tenant.ID, "live")
	l := &app.LastUse{Worker: w.Worker, Log: w.Log}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	l.Note(k.ID, time.Now().Add(-time.Hour))
	if err := l.Write(dead); err == nil {
		t.Fatal("a write with a cancelled context succeeded")
	}
	if err := l.Run(dead); err != nil {
		t.Fatal(err)
	}
	if n := w.count(t, `select count(*) from api_keys where last_used_at is not null`); n != 1 {
		t.Fatalf("%d keys have a last use, want 1", n)
	}
}
