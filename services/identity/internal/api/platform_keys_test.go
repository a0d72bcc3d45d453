package api_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/proto/platformapi"
)

// A key is created once for an Idempotency-Key, with an optional expiry. A rotation keeps its lifetime unless the request says otherwise,
// and does not prolong the previous key.
func TestPlatformCreatesKeys(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, tenant, _ := p.keyed("live", "all")
	at := "/tenants/" + tenant.ID.String() + "/api-keys"
	key := func(r platformResponse) platformapi.NewAPIKey { return read[platformapi.NewAPIKey](r.is(201)) }
	expires := time.Now().Add(90 * time.Minute).UTC().Truncate(time.Microsecond)
	body := fmt.Sprintf(`{"name":"Till","mode":"test","scopes":["write:units","read:units"],"expires_at":%q}`, expires.Format(time.RFC3339Nano))
	first := p.call("POST", at, body, "Idempotency-Key", "k").is(201)
	created := key(first)
	if !created.ExpiresAt.MustGet().Equal(expires) || created.Status != "active" || created.Mode != "test" || fmt.Sprint(created.Scopes) != "[read:units write:units]" {
		t.Errorf("created %+v", created)
	}
	if again := p.call("POST", at, body, "Idempotency-Key", "k").is(201); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("replayed %s", again.Body)
	}
	if found := p.principal(created.Secret); found.ExpiresAt == nil || !found.ExpiresAt.Equal(expires) || !*found.ExpirySet || found.Revoked {
		t.Errorf("the gateway finds %+v", found)
	}
	if forever := key(p.call("POST", at, `{"name":"Forever","mode":"live","scopes":["read:units"],"expires_at":null}`)); !forever.ExpiresAt.IsNull() {
		t.Errorf("without an expiry %+v", forever)
	}

	next := key(p.call("POST", at+"/"+created.ID+"/rotate", `{"previous_key_expires_in":604800}`))
	if lifetime := next.ExpiresAt.MustGet().Sub(next.CreatedAt) - expires.Sub(created.CreatedAt); lifetime.Abs() > time.Second {
		t.Errorf("the successor lives %s longer", lifetime)
	}
	listed := read[platformapi.APIKeyList](p.call("GET", at+"?mode=test", "").is(200)).Data
	if len(listed) != 2 || listed[1].Status != "rotated" || !listed[1].ExpiresAt.MustGet().Equal(expires) {
		t.Errorf("the rotation changed the end of the key: %+v", listed)
	}
	if last := key(p.call("POST", at+"/"+next.ID+"/rotate", `{"expires_at":null}`)); !last.ExpiresAt.IsNull() {
		t.Errorf("a successor without an expiry %+v", last)
	}

	far := time.Now().AddDate(10, 0, 5).Format(time.RFC3339)
	for more, field := range map[string]string{
		`"expires_at":"2020-01-01T00:00:00Z"`: "expires_at", fmt.Sprintf(`"expires_at":%q`, far): "expires_at", `"expires_at":"tomorrow"`: "expires_at",
		`"scopes":[]`: "scopes", `"scopes":["all"]`: "scopes", `"scopes":["read:boats"]`: "scopes", `"mode":"prod"`: "mode", `"name":""`: "name", `"color":"red"`: "color",
	} {
		base := map[string]string{"name": `"name":"Till"`, "mode": `"mode":"live"`, "scopes": `"scopes":["read:units"]`}
		base[field] = more
		text := ""
		for _, property := range base {
			text += "," + property
		}
		p.call("POST", at, "{"+text[1:]+"}").is(422, "invalid_request", field)
	}
	p.call("POST", "/tenants/tn_00000000000000000000000000/api-keys", body).is(404, "tenant_not_found")
	p.key = p.newKey("read:keys,rotate:keys,revoke:keys")
	p.call("POST", at, body).is(403, "insufficient_scope")
}

// An expired key is listed as such, is not rotated, and leaves its place. The lookup says that it has expired and was not revoked.
func TestPlatformKeysExpire(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, tenant, _ := p.keyed("live", "all")
	p.call("PUT", "/tenants/"+tenant.ID.String()+"/limits", `{"caps":{"api_keys":2}}`).is(200)
	at := "/tenants/" + tenant.ID.String() + "/api-keys"
	body := fmt.Sprintf(`{"name":"Till","mode":"live","scopes":["read:units"],"expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
	created := read[platformapi.NewAPIKey](p.call("POST", at, body).is(201))
	p.call("POST", at, body).is(422, "limit_reached", "name")
	p.Exec(`update api_keys set expires_at = now() - interval '1 second' where expires_at is not null`)
	if listed := read[platformapi.APIKeyList](p.call("GET", at+"?mode=live", "").is(200)).Data; listed[0].Status != "expired" || !listed[0].RevokedAt.IsNull() {
		t.Errorf("listed %+v", listed[0])
	}
	if found := p.principal(created.Secret); found.Revoked || !*found.ExpirySet || found.ExpiresAt.After(time.Now()) {
		t.Errorf("the gateway finds %+v", found)
	}
	p.call("POST", at+"/"+created.ID+"/rotate", `{}`).is(422, "invalid_status_transition")
	p.call("POST", at, body).is(201)
}
