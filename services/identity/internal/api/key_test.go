package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const apiKeys = "/internal/v1/api-keys"

// principal returns the principal that the gateway looks up for a secret.
func (w *world) principal(secret string) internalapi.Principal {
	w.T.Helper()
	return decode[internalapi.Principal](w.from(w.service("gateway", ids.Tenant{}, ""), "gateway", "POST", lookup, lookupOf(secret)).is(200))
}

// records returns the audit records of a tenant with the given action, oldest first.
func (w *world) records(of domain.Tenant, action string) (found []domain.Record) {
	w.T.Helper()
	err := w.app.ListAudit(w.T.Context(), store.AuditFilter{Tenant: of.ID}, 1000, func(all []domain.Record) error {
		for _, r := range all {
			if r.Action == action {
				found = append(found, r)
			}
		}
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	slices.Reverse(found)
	return found
}

// TestKeysForTheConsole checks that the console creates, lists, and revokes the keys of one tenant and mode. The audit log names
// the operator.
func TestKeysForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Test)
	list := func(ctx context.Context) (found []internalapi.Key) {
		t.Helper()
		return decode[internalapi.KeyList](w.from(ctx, "console", "GET", apiKeys, "").is(200)).Data
	}
	if a := w.from(ctx, "console", "GET", apiKeys, "").is(200); string(a.Body) != `{"data":[]}` {
		t.Errorf("%s", a.Body)
	}
	newKey := decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys, `{"name":"Till","scopes":["write:bookings","read:units","read:units"]}`).is(201))
	if newKey.Secret == nil || !strings.HasPrefix(*newKey.Secret, "svc_test_") || newKey.Name != "Till" || newKey.Mode != "test" || len(newKey.Scopes) != 2 || newKey.ExpiresAt != nil || newKey.RevokedAt != nil || newKey.LastUsedAt != nil {
		t.Fatalf("%+v", newKey)
	}
	if p := w.principal(*newKey.Secret); p.ID != newKey.ID || p.TenantID != tenant.ID.String() || p.Mode != "test" || p.Revoked || p.ExpiresAt != nil || !slices.Equal(p.Scopes, newKey.Scopes) {
		t.Errorf("%+v", p)
	}
	if err := w.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys, `{"name":"","scopes":["read:units"]}`).is(201))
	if all := list(ctx); len(all) != 2 || all[0].ID != second.ID || all[1].ID != newKey.ID || all[1].LastUsedAt == nil || all[0].Secret != nil || all[1].Secret != nil {
		t.Errorf("%+v", all)
	}
	for range 2 {
		ended := decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys+"/"+newKey.ID+"/revoke", "").is(200))
		if ended.ID != newKey.ID || ended.RevokedAt == nil || ended.Secret != nil {
			t.Errorf("%+v", ended)
		}
	}
	if !w.principal(*newKey.Secret).Revoked {
		t.Error("the key is not revoked")
	}
	if all := list(ctx); len(all) != 2 || all[1].RevokedAt == nil {
		t.Errorf("%+v", all)
	}
	source := "console:" + caller.FromContext(ctx).RequestID
	for _, action := range []string{domain.KeyCreated, domain.KeyRevoked} {
		all := w.records(tenant, action)
		if r := all[len(all)-1]; r.Actor != owner.ID.String() || r.Source != source || r.Livemode {
			t.Errorf("%s: %+v", action, r)
		}
	}
	if n := len(w.records(tenant, domain.KeyRevoked)); n != 1 {
		t.Errorf("%d records of the end", n)
	}
	for _, c := range [][2]string{
		{`{"name":"x","scopes":[]}`, "scopes"},
		{`{"name":"x"}`, "scopes"},
		{`{"name":"x","scopes":["x"]}`, "scopes"},
		{`{"name":"x","scopes":["all"]}`, "scopes"},
		{`{"name":"x","scopes":["read:units,write:bookings"]}`, "scopes"},
		{`{"name":"` + strings.Repeat("x", 201) + `","scopes":["read:units"]}`, "name"},
		{`{"name":"x","scopes":["read:units"],"mode":"live"}`, "mode"},
	} {
		w.from(ctx, "console", "POST", apiKeys, c[0], strict).is(422, "invalid_request", c[1])
	}
	w.from(ctx, "console", "POST", apiKeys, "").is(400, "missing_content_type")
	w.from(ctx, "console", "POST", apiKeys, "[]").is(400, "malformed_json")
}

// TestRotation checks that a rotated key works in parallel with the new one until the overlap ends. After that, it is rejected like
// a revoked key.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	rotate := func(id, body string) response { return w.from(ctx, "console", "POST", apiKeys+"/"+id+"/rotate", body) }
	old := decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys, `{"name":"Till","scopes":["read:units"]}`).is(201))
	version := w.principal(*old.Secret).Version
	fresh := decode[internalapi.Key](rotate(old.ID, `{"overlap_seconds":3600}`).is(201))
	if fresh.ID == old.ID || fresh.Secret == nil || *fresh.Secret == *old.Secret || fresh.Name != "Till" || fresh.Mode != "live" || !slices.Equal(fresh.Scopes, old.Scopes) || fresh.ExpiresAt != nil {
		t.Fatalf("%+v", fresh)
	}
	p := w.principal(*old.Secret)
	if p.Revoked || p.ExpiresAt == nil || time.Until(*p.ExpiresAt) > time.Hour || time.Until(*p.ExpiresAt) < 59*time.Minute || p.Version != version+1 {
		t.Errorf("%+v", p)
	}
	if p := w.principal(*fresh.Secret); p.Revoked || p.ExpiresAt != nil {
		t.Errorf("%+v", p)
	}
	rotate(old.ID, `{"overlap_seconds":0}`).is(422, "invalid_status_transition")
	w.Exec(`update api_keys set expires_at = now() - interval '1 second' where expires_at is not null`)
	if err := w.lastUse.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := w.used()
	if !w.principal(*old.Secret).Revoked || w.principal(*fresh.Secret).Revoked {
		t.Error("the old key works on")
	}
	w.Exec(`update api_keys set last_used_at = null`)
	if err := w.lastUse.Write(t.Context()); err != nil || w.used() != used-1 {
		t.Errorf("an ended key counts as used: %d, then %d: %v", used, w.used(), err)
	}

	last := decode[internalapi.Key](rotate(fresh.ID, `{"overlap_seconds":0}`).is(201))
	if !w.principal(*fresh.Secret).Revoked || w.principal(*last.Secret).Revoked {
		t.Error("the key did not end at once")
	}
	rotate(fresh.ID, `{"overlap_seconds":0}`).is(422, "invalid_status_transition")
	for _, body := range []string{`{}`, `{"overlap_seconds":-1}`, `{"overlap_seconds":604801}`, `{"overlap_seconds":9223372036854775807}`, `{"overlap_seconds":null}`} {
		rotate(last.ID, body).is(422, "invalid_request", "overlap_seconds")
	}
	rotate(last.ID, `{"overlap_seconds":"1"}`).is(422, "invalid_request", "overlap_seconds")
	rotate(last.ID, `{"overlap_seconds":604800}`).is(201)
	rotations := w.records(tenant, domain.KeyRotated)
	if len(rotations) != 3 || rotations[0].Object != old.ID || rotations[0].Actor != owner.ID.String() || !strings.Contains(string(rotations[0].After), fresh.ID) || !rotations[0].Livemode ||
		strings.Contains(fmt.Sprint(rotations), *fresh.Secret) {
		t.Errorf("%+v", rotations)
	}
}

// TestKeysOfOthers checks that no call reaches a key of another tenant or of the other mode.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	own := decode[internalapi.Key](w.from(w.as(owner, tenant, caller.Live), "console", "POST", apiKeys, `{"name":"Till","scopes":["read:units"]}`).is(201))
	for name, ctx := range map[string]context.Context{"another tenant": w.as(stranger, other, caller.Live), "the other mode": w.as(owner, tenant, caller.Test)} {
		t.Log(name)
		w.from(ctx, "console", "POST", apiKeys+"/"+own.ID+"/rotate", `{"overlap_seconds":0}`).is(404, "key_not_found")
		w.from(ctx, "console", "POST", apiKeys+"/"+own.ID+"/revoke", "").is(404, "key_not_found")
		if a := w.from(ctx, "console", "GET", apiKeys, "").is(200); strings.Contains(string(a.Body), own.ID) {
			t.Errorf("%s", a.Body)
		}
	}
	for _, id := range []string{"x", domain.NewKeyID().String()} {
		w.from(w.as(owner, tenant, caller.Live), "console", "POST", apiKeys+"/"+id+"/revoke", "").is(404, "key_not_found")
	}
	if p := w.principal(*own.Secret); p.Revoked || p.ExpiresAt != nil {
		t.Errorf("%+v", p)
	}
}

// TestRotationIsPublished checks that a rotation notifies the gateways: with a tombstone for an immediate end, and with a new
// version for a later end.
func TestRotationIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	silent := *w.app
	silent.Redis = nowhere{}
	w.app = &silent
	w.engine = w.serve(w.DB.App)
	for overlap, want := range map[int]string{0: domain.Revoked, 60: "3"} {
		old := decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys, `{"name":"Till","scopes":["read:units"]}`).is(201))
		w.from(ctx, "console", "POST", apiKeys+"/"+old.ID+"/rotate", fmt.Sprintf(`{"overlap_seconds":%d}`, overlap)).is(201)
		id, err := domain.ParseKeyID(old.ID)
		if err != nil {
			t.Fatal(err)
		}
		if n := w.Count(`select count(*) from key_signals where key_id = $1 and value = $2`, id, want); n != 1 {
			t.Errorf("overlap %d: no invalidation %s", overlap, want)
		}
	}
}

// nowhere is a Redis that is unavailable.
type nowhere struct{}

func (nowhere) Publish(context.Context, []domain.Invalidation) error { return context.DeadlineExceeded }

// TestKeysAreCreatedOncePerIdempotencyKey checks that a repeated call with its Idempotency-Key gets the first response, including
// the secret, and creates nothing again. The secret is not stored in plain text.
func TestKeysAreCreatedOncePerIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	send := func(key, path, body string) response {
		t.Helper()
		return response{w.Send(ctx, w.engine, "console", "POST", path, body, apitest.Header("Idempotency-Key: "+key))}
	}
	till := `{"name":"Till","scopes":["read:units"]}`
	responses := make([]response, 6)
	var group sync.WaitGroup
	for i := range responses {
		group.Go(func() { responses[i] = send("create-1", apiKeys, till) })
	}
	group.Wait()
	newKey := decode[internalapi.Key](responses[0].is(201))
	for _, a := range responses {
		if got := decode[internalapi.Key](a.is(201)); got.ID != newKey.ID || got.Secret == nil || *got.Secret != *newKey.Secret {
			t.Errorf("%+v, want %+v", got, newKey)
		}
	}
	if n := w.Count(`select count(*) from api_keys where tenant_id = $1 and created_at >= $2`, tenant.ID, newKey.CreatedAt); n != 1 {
		t.Errorf("%d keys", n)
	}
	send("create-1", apiKeys, `{"name":"Other","scopes":["read:units"]}`).is(422, "idempotency_mismatch")

	rotate := apiKeys + "/" + newKey.ID + "/rotate"
	next := decode[internalapi.Key](send("rotate-1", rotate, `{"overlap_seconds":0}`).is(201))
	again := send("rotate-1", rotate, `{"overlap_seconds":0}`).is(201)
	if got := decode[internalapi.Key](again); got.ID != next.ID || got.Secret == nil || *got.Secret != *next.Secret || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v %v", got, again.Header)
	}
	send("rotate-2", rotate, `{"overlap_seconds":0}`).is(422, "invalid_status_transition")
	if n := w.Count(`select count(*) from api_keys where tenant_id = $1 and created_at >= $2`, tenant.ID, newKey.CreatedAt); n != 2 || !w.principal(*newKey.Secret).Revoked || w.principal(*next.Secret).Revoked {
		t.Errorf("%d keys", n)
	}
	for _, secret := range []string{*newKey.Secret, *next.Secret} {
		if n := w.Count(`select count(*) from idempotency_keys where position($1::bytea in body) > 0 or not secret`, []byte(secret)); n != 0 {
			t.Errorf("%d stored responses are not sealed", n)
		}
	}
}

// TestConsoleCallsTakeEffectOncePerIdempotencyKey checks that the other calls that create something also accept a key: an app and
// an invitation.
func TestConsoleCallsTakeEffectOncePerIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		ctx := w.as(owner, tenant, mode)
		for path, body := range map[string]string{
			"/internal/v1/apps":    `{"name":"App ` + string(mode) + `","redirect_uris":["https://app.example/back"],"scopes":["read:units"]}`,
			"/internal/v1/members": `{"email":"dana-` + string(mode) + `@example.com","name":"Dana","role":"viewer"}`,
		} {
			header := apitest.Header("Idempotency-Key: " + string(mode) + path)
			first := response{w.Send(ctx, w.engine, "console", "POST", path, body, header)}.is(201)
			second := response{w.Send(ctx, w.engine, "console", "POST", path, body, header)}.is(201)
			if string(first.Body) != string(second.Body) {
				t.Errorf("%s: %s, then %s", path, first.Body, second.Body)
			}
		}
	}
	if n := w.Count(`select count(*) from oauth_apps where tenant_id = $1`, tenant.ID); n != 2 {
		t.Errorf("%d apps", n)
	}
	if n := len(w.records(tenant, domain.OperatorInvited)); n != 3 { // the owner and two more
		t.Errorf("%d invitations", n)
	}
}
