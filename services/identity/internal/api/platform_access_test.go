package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/proto/platformapi"
)

// signedUp invites an owner and accepts the invitation. It returns the ID of the owner.
func (p *platform) signedUp(at, email string) string {
	p.t.Helper()
	o := read[platformapi.Owner](p.call("POST", at+"/owners", fmt.Sprintf(`{"email":%q,"name":"Ada"}`, email)).is(201))
	link := o.Link.MustGet()
	if _, err := p.app.UseLink(p.t.Context(), platformTeam, link[strings.LastIndex(link, "/")+1:], "correct horse battery staple"); err != nil {
		p.t.Fatal(err)
	}
	return o.ID
}

// Owners are listed by page and removed, except the last one who can sign in: an invited one does not count.
func TestPlatformOwners(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, tenant, _ := p.keyed("live", "all")
	_, other, _ := p.keyed("live", "all")
	at, elsewhere := "/tenants/"+tenant.ID.String(), "/tenants/"+other.ID.String()
	if list := read[platformapi.TenantOwnerList](p.call("GET", at+"/owners", "").is(200)); len(list.Data) != 0 || list.HasMore {
		t.Errorf("owners of a new tenant %+v", list)
	}
	first := p.signedUp(at, "first@example.com")
	invited := read[platformapi.Owner](p.call("POST", at+"/owners", `{"email":"invited@example.com","name":"Ida"}`).is(201)).ID
	p.call("POST", at+"/owners/"+first+"/remove", "").is(422, "last_owner")
	second := p.signedUp(at, "second@example.com")
	want, got := []string{first + " active", invited + " invited", second + " active"}, []string{}
	for path := at + "/owners?limit=2"; path != ""; {
		page := read[platformapi.TenantOwnerList](p.call("GET", path, "").is(200))
		for _, o := range page.Data {
			got = append(got, o.ID+" "+o.Status)
		}
		path = ""
		if page.HasMore {
			path = at + "/owners?limit=2&cursor=" + page.NextCursor.MustGet()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("owners %q, want %q", got, want)
	}
	p.call("GET", at+"/owners?cursor=tn_01k00000000000000000000001", "").is(400, "invalid_cursor")
	p.call("POST", elsewhere+"/owners/"+first+"/remove", "").is(404, "operator_not_found")
	p.call("POST", at+"/owners/nonsense/remove", "").is(404, "operator_not_found")
	removed := p.call("POST", at+"/owners/"+first+"/remove", "", "Idempotency-Key", "r").is(200)
	if o := read[platformapi.TenantOwner](removed); o.ID != first || o.Email != "first@example.com" {
		t.Errorf("removed %+v", o)
	}
	if again := p.call("POST", at+"/owners/"+first+"/remove", "", "Idempotency-Key", "r").is(200); !bytes.Equal(again.Body.Bytes(), removed.Body.Bytes()) {
		t.Errorf("replayed %s", again.Body)
	}
	p.call("POST", at+"/owners/"+first+"/remove", "").is(404, "operator_not_found")
	p.call("POST", at+"/owners/"+second+"/remove", "").is(422, "last_owner")
	p.call("POST", at+"/owners/"+invited+"/remove", "").is(200)
	p.key = p.newKey("read:tenants,invite:owners")
	p.call("GET", at+"/owners", "").is(403, "insufficient_scope")
	p.call("POST", at+"/owners/"+second+"/remove", "").is(403, "insufficient_scope")
}

// A key is rotated once, with an overlap of a day unless the request says otherwise, and a retry returns the same secret.
func TestPlatformRotatesKeys(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, tenant, _ := p.keyed("live", "all")
	_, other, _ := p.keyed("live", "all")
	at := "/tenants/" + tenant.ID.String() + "/api-keys"
	keys := func() []platformapi.APIKey {
		return read[platformapi.APIKeyList](p.call("GET", at+"?mode=live", "").is(200)).Data
	}
	old := keys()[0]
	for _, wrong := range []string{`{"previous_key_expires_in":-1}`, `{"previous_key_expires_in":604801}`} {
		p.call("POST", at+"/"+old.ID+"/rotate", wrong).is(422, "invalid_request", "previous_key_expires_in")
	}
	p.call("POST", "/tenants/"+other.ID.String()+"/api-keys/"+old.ID+"/rotate", `{}`).is(404, "key_not_found")
	first := p.call("POST", at+"/"+old.ID+"/rotate", `{}`, "Idempotency-Key", "r").is(201)
	next := read[platformapi.NewAPIKey](first)
	if next.ID == old.ID || next.Name != old.Name || next.Mode != old.Mode || !slices.Equal(next.Scopes, old.Scopes) || next.Status != "active" || !apikey.Has(next.Secret, "svc_live_", apikey.KeyDigits) {
		t.Errorf("rotated %+v", next)
	}
	if again := p.call("POST", at+"/"+old.ID+"/rotate", `{}`, "Idempotency-Key", "r").is(201); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("replayed %s", again.Body)
	}
	all := keys()
	if len(all) != 2 || all[0].ID != next.ID || all[1].Status != "rotated" || all[1].ExpiresAt.MustGet().Sub(next.CreatedAt).Round(time.Minute) != 24*time.Hour {
		t.Errorf("keys %+v", all)
	}
	p.call("POST", at+"/"+old.ID+"/rotate", `{}`).is(422, "invalid_status_transition")
	p.call("POST", at+"/"+next.ID+"/rotate", `{"previous_key_expires_in":0}`).is(201)
	if all = keys(); len(all) != 3 || all[1].Status != "revoked" || all[1].RevokedAt.IsNull() {
		t.Errorf("revoked at once %+v", all)
	}
	p.key = p.newKey("read:keys,revoke:keys")
	p.call("POST", at+"/"+all[0].ID+"/rotate", `{}`).is(403, "insufficient_scope")
}

// The audit log of a tenant is listed by page, newest first, with filters, and without the records of another tenant.
func TestPlatformAuditRecords(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	created := read[platformapi.Tenant](p.call("POST", "/tenants", newTenant).is(201))
	p.keyed("live", "all")
	at := "/tenants/" + created.ID
	for i := range 4 {
		p.call("PATCH", at, fmt.Sprintf(`{"name":"Pier %d"}`, i)).is(200)
	}
	p.call("POST", at+"/suspend", `{"reason":"unpaid"}`).is(200)
	list := func(query string) (out []string) {
		t.Helper()
		for path := at + "/audit-records?limit=2" + query; path != ""; {
			page := read[platformapi.AuditRecordList](p.call("GET", path, "").is(200))
			for _, r := range page.Data {
				out = append(out, fmt.Sprint(r.Sequence, " ", r.Action))
				if r.ObjectID != created.ID || !strings.HasPrefix(r.Actor, "pk_") || !strings.HasPrefix(r.Source, "platform:req_") || r.After.IsNull() || r.Before.IsNull() != (r.Sequence == 1) {
					t.Errorf("%+v", r)
				}
			}
			path = ""
			if page.HasMore {
				path = at + "/audit-records?limit=2" + query + "&cursor=" + page.NextCursor.MustGet()
			}
		}
		return out
	}
	all := []string{"6 tenant.suspend", "5 tenant.update", "4 tenant.update", "3 tenant.update", "2 tenant.update", "1 tenant.create"}
	for query, want := range map[string][]string{
		"": all, "&action=tenant.update": all[1:5], "&object=" + created.ID: all, "&object=key_x": nil, "&actor=cli": nil, "&mode=test": nil, "&mode=live": all,
		"&to=2020-01-01T00:00:00Z": nil, "&from=2020-01-01T00:00:00Z": all,
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, wrong := range []string{"nonsense", "0", "-1", "99999999999999999999"} {
		p.call("GET", at+"/audit-records?cursor="+wrong, "").is(400, "invalid_cursor")
	}
	p.call("GET", at+"/audit-records?from=yesterday", "").is(422, "invalid_request", "from")
	p.call("GET", "/tenants/nonsense/audit-records", "").is(404, "tenant_not_found")
	p.key = p.newKey("read:tenants")
	p.call("GET", at+"/audit-records", "").is(403, "insufficient_scope")
}
