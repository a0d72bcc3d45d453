package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

// platform is the platform API on a database of its own, with a key that has all scopes.
type platform struct {
	*world

	t       *testing.T
	engine  *gin.Engine
	key     string
	checker *contracttest.Checker

	metering *app.Metering
}

var platformTeam = domain.Origin{Actor: "cli", Source: "test"}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{world: newWorld(t), t: t, engine: httpx.NewEngine("https://booking.test"), checker: contracttest.New(t, proto.Platform)}
	p.app.AuthURL = "https://booking.test"
	idempotency := &idemstore.Store{DB: p.DB.App, Box: p.app.Box, Now: time.Now}
	p.metering = &app.Metering{App: p.app, Sources: map[string]app.UsageSource{
		"identity": &peers.OwnUsage{Source: &usage.Source{Service: "identity", DB: p.DB.App}},
	}}
	handlers := &api.PlatformAPI{
		App: p.app, Metering: p.metering, Idempotency: idempotency, Server: &httpx.Server{Service: "identity", Idempotency: idempotency}, Now: time.Now,
		ErasedServices: []string{"one"},
	}
	if err := handlers.Mount(p.engine); err != nil {
		t.Fatal(err)
	}
	p.key = p.newKey("all")
	return p
}

func (p *platform) newKey(scopes string) string {
	p.t.Helper()
	_, secret, err := p.app.CreatePlatformKey(p.t.Context(), platformTeam, "test", scopes)
	if err != nil {
		p.t.Fatal(err)
	}
	return secret
}

// platformResponse is a response of the platform API.
type platformResponse struct {
	t *testing.T
	*httptest.ResponseRecorder
}

// call sends a request with headers in pairs, and checks the response against the contract.
func (p *platform) call(method, path, body string, headers ...string) platformResponse {
	p.t.Helper()
	r := httptest.NewRequestWithContext(p.t.Context(), method, "/platform/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+p.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.engine.ServeHTTP(w, r)
	res := w.Result()
	p.checker.Check(p.t, r, res, w.Body.Bytes())
	_ = res.Body.Close()
	for name := range w.Header() {
		if strings.HasPrefix(name, "X-Internal-") {
			p.t.Errorf("%s %s has the header %s", method, path, name)
		}
	}
	if !strings.HasPrefix(w.Header().Get("X-Request-Id"), "req_") {
		p.t.Errorf("%s %s: request id %q", method, path, w.Header().Get("X-Request-Id"))
	}
	return platformResponse{p.t, w}
}

func (r platformResponse) is(status int, codeAndField ...string) platformResponse {
	r.t.Helper()
	var e struct{ Error struct{ Code, Param string } }
	_ = json.Unmarshal(r.Body.Bytes(), &e)
	if r.Code != status || len(codeAndField) > 0 && e.Error.Code != codeAndField[0] || len(codeAndField) > 1 && e.Error.Param != codeAndField[1] {
		r.t.Fatalf("%d %s, want %d %v", r.Code, r.Body, status, codeAndField)
	}
	return r
}

func read[T any](r platformResponse) (out T) {
	r.t.Helper()
	if err := json.Unmarshal(r.Body.Bytes(), &out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

const newTenant = `{"slug":"harbor","name":"Harbor Tours","timezone":"America/New_York","currency":"usd","country":"us"}`

// A tenant is created once for an Idempotency-Key, shown, listed, updated, suspended and resumed, each with its audit record by the
// platform key, and with If-Match.
func TestPlatformTenants(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	first := p.call("POST", "/tenants", newTenant, "Idempotency-Key", "one").is(201)
	created := read[platformapi.Tenant](first)
	if created.Currency != "USD" || created.Status != platformapi.TenantActive || first.Header().Get("ETag") != `"1"` || first.Header().Get("Location") != "/platform/v1/tenants/"+created.ID {
		t.Errorf("%s %v", first.Body, first.Header())
	}
	again := p.call("POST", "/tenants", newTenant, "Idempotency-Key", "one").is(201)
	if !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) || again.Header().Get("Idempotent-Replayed") != "true" || again.Header().Get("Location") != first.Header().Get("Location") {
		t.Errorf("replayed %s %v", again.Body, again.Header())
	}
	p.call("POST", "/tenants", strings.Replace(newTenant, "Harbor T", "Other T", 1), "Idempotency-Key", "one").is(422, "idempotency_mismatch")
	p.call("POST", "/tenants", newTenant).is(409, "slug_taken")
	p.call("POST", "/tenants", strings.Replace(newTenant, "America/New_York", "Mars", 1)).is(422, "invalid_request", "timezone")
	p.call("POST", "/tenants", strings.Replace(newTenant, `"slug"`, `"color":"red","slug"`, 1)).is(422, "invalid_request", "color")
	p.call("POST", "/tenants", `{`).is(400, "malformed_json")
	at := "/tenants/" + created.ID
	if got := p.call("GET", at, "").is(200); !bytes.Equal(got.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("shown %s", got.Body)
	}
	p.call("PATCH", at, `{"name":"Pier"}`, "If-Match", `"9"`).is(412, "version_mismatch")
	if got := p.call("PATCH", at, `{"name":"Pier","country":null}`, "If-Match", `"1"`).is(200); read[platformapi.Tenant](got).Name != "Pier" || got.Header().Get("ETag") != `"2"` {
		t.Errorf("updated %s", got.Body)
	}
	p.call("POST", at+"/resume", `{"reason":"why"}`).is(422, "invalid_status_transition", "status")
	p.call("POST", at+"/suspend", `{"reason":""}`).is(422, "invalid_request", "reason")
	p.call("POST", at+"/suspend", `{"reason":"unpaid"}`, "If-Match", `"1"`).is(412, "version_mismatch")
	for range 2 { // the second is a replay
		got := read[platformapi.Tenant](p.call("POST", at+"/suspend", `{"reason":"unpaid"}`, "If-Match", `"2"`, "Idempotency-Key", "s").is(200))
		if got.Status != platformapi.TenantSuspended || got.StatusReason.MustGet() != "unpaid" || got.Version != 3 {
			t.Errorf("suspended %+v", got)
		}
	}
	if list := read[platformapi.TenantList](p.call("GET", "/tenants?status=suspended", "").is(200)); len(list.Data) != 1 || list.Data[0].ID != created.ID {
		t.Errorf("suspended tenants %+v", list)
	}
	if list := read[platformapi.TenantList](p.call("GET", "/tenants?status=active", "").is(200)); len(list.Data) != 0 {
		t.Errorf("active tenants %+v", list)
	}
	p.call("POST", at+"/resume", `{"reason":"paid"}`).is(200)
	for _, wrong := range []string{"/tenants/tn_00000000000000000000000000", "/tenants/nonsense"} {
		p.call("GET", wrong, "").is(404, "tenant_not_found")
		p.call("PATCH", wrong, `{"name":"x"}`).is(404, "tenant_not_found")
		p.call("PATCH", wrong, `{"name":1}`).is(404, "tenant_not_found")
		p.call("POST", wrong+"/suspend", `{"reason":"x"}`).is(404, "tenant_not_found")
		p.call("PUT", wrong+"/limits", `{}`).is(404, "tenant_not_found")
		p.call("POST", wrong+"/owners", `{"email":"a@example.com","name":"A"}`).is(404, "tenant_not_found")
		p.call("GET", wrong+"/api-keys?mode=live", "").is(404, "tenant_not_found")
	}
	var actors []string
	rows, err := p.Owner().Query(t.Context(), `select action || ' ' || split_part(actor, '_', 1) || ' ' || split_part(source, ':', 1) from audit_log order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		actors = append(actors, one)
	}
	if want := []string{"tenant.create pk platform", "tenant.update pk platform", "tenant.suspend pk platform", "tenant.resume pk platform"}; !slices.Equal(actors, want) {
		t.Errorf("audited %v", actors)
	}
}

// A tenant is closed, shown with the time of its erasure, reopened, and finally erased. What remains can be read.
func TestPlatformClosesTenants(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.app.ClosingPeriod = time.Hour
	created := read[platformapi.Tenant](p.call("POST", "/tenants", newTenant).is(201))
	at := "/tenants/" + created.ID
	p.call("GET", at+"/erasure", "").is(404, "tenant_erasure_not_found")
	p.call("GET", "/tenants/nonsense/erasure", "").is(404, "tenant_erasure_not_found")
	p.call("POST", at+"/reopen", `{"reason":"why"}`).is(422, "invalid_status_transition", "status")
	p.call("POST", at+"/close", `{"reason":""}`).is(422, "invalid_request", "reason")
	p.call("POST", at+"/close", `{"reason":"over"}`, "If-Match", `"9"`).is(412, "version_mismatch")
	for range 2 { // the second is a replay
		got := read[platformapi.Tenant](p.call("POST", at+"/close", `{"reason":"over"}`, "If-Match", `"1"`, "Idempotency-Key", "c").is(200))
		if got.Status != platformapi.TenantClosing || !got.EraseAt.MustGet().Equal(got.StatusChangedAt.MustGet().Add(time.Hour)) || got.Version != 2 {
			t.Errorf("closing %+v", got)
		}
	}
	p.call("POST", at+"/close", `{"reason":"over"}`).is(422, "invalid_status_transition", "status")
	p.call("POST", at+"/suspend", `{"reason":"x"}`).is(422, "invalid_status_transition", "status")
	e := read[platformapi.Erasure](p.call("GET", at+"/erasure", "").is(200))
	if e.Status != platformapi.ErasureScheduled || !strings.HasPrefix(e.ClosedBy, "pk_") || e.EraseAt.IsNull() || len(e.Services) != 0 {
		t.Errorf("scheduled %+v", e)
	}
	if got := read[platformapi.Tenant](p.call("POST", at+"/reopen", `{"reason":"they stay"}`).is(200)); got.Status != platformapi.TenantActive || !got.EraseAt.IsNull() {
		t.Errorf("reopened %+v", got)
	}
	p.app.ClosingPeriod = 0
	p.call("POST", at+"/close", `{"reason":"over"}`, "Idempotency-Key", "d").is(200)
	if e = read[platformapi.Erasure](p.call("GET", at+"/erasure", "").is(200)); e.Status != platformapi.ErasureWaiting {
		t.Errorf("due %+v", e)
	}
	erasures := &app.Erasures{
		App: p.app, Own: &erasure.Eraser{Worker: p.DB.Worker}, Platform: domain.PlatformTenant, Services: map[string]app.ErasureService{"one": other{}},
	}
	if err := erasures.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e = read[platformapi.Erasure](p.call("GET", at+"/erasure", "").is(200))
	if e.Status != platformapi.ErasureErased || e.ErasedAt.IsNull() || len(e.Services) != 1 || !e.Services[0].Erased || e.DeletedRows <= 3 || !strings.HasPrefix(e.ClosedBy, "pk_") {
		t.Errorf("erased %+v", e)
	}
	p.call("GET", at, "").is(404, "tenant_not_found")
	p.call("POST", at+"/reopen", `{"reason":"back"}`).is(404, "tenant_not_found")
	p.call("POST", at+"/close", `{"reason":"over"}`, "Idempotency-Key", "d").is(404, "tenant_not_found") // no stored response contains the tenant
	p.call("POST", "/tenants", newTenant).is(201)                                                        // the slug is free
	p.key = p.newKey("read:tenants,suspend:tenants")
	p.call("POST", at+"/close", `{"reason":"over"}`).is(403, "insufficient_scope")
}

// other is another service, which has 3 rows of each tenant.
type other struct{}

func (other) Prepare(context.Context, ids.Tenant) (string, error) { return "", nil }

func (other) Step(context.Context, ids.Tenant) (erasure.Progress, error) {
	return erasure.Progress{Erased: true, Deleted: 3}, nil
}

// Pages contain each row once, in order, and a cursor of another list is refused.
func TestPlatformListsByPage(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	var want []string
	for _, slug := range []string{"c", "a", "b"} {
		want = append(want, read[platformapi.Tenant](p.call("POST", "/tenants", strings.Replace(newTenant, "harbor", slug, 1)).is(201)).ID)
	}
	var got []string
	path := "/tenants?limit=2"
	for {
		page := read[platformapi.TenantList](p.call("GET", path, "").is(200))
		for _, one := range page.Data {
			got = append(got, one.ID)
		}
		if !page.HasMore {
			break
		}
		path = "/tenants?limit=2&cursor=" + page.NextCursor.MustGet()
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	p.call("GET", "/tenants?cursor=key_01k00000000000000000000001", "").is(400, "invalid_cursor")
	p.call("GET", "/tenants?limit=101", "").is(422, "invalid_request", "limit")
	p.call("GET", "/tenants?status=closed", "").is(422, "invalid_request", "status")
}

// An owner is invited with a link that a replay shows again, and keys are listed by mode and revoked, but not those of another
// tenant.
func TestPlatformAccess(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	ctx, tenant, _ := p.keyed("live", "all")
	_, other, _ := p.keyed("live", "all")
	at, elsewhere := "/tenants/"+tenant.ID.String(), "/tenants/"+other.ID.String()
	first := p.call("POST", at+"/owners", `{"email":"ada@example.com","name":"Ada"}`, "Idempotency-Key", "o").is(201)
	owner := read[platformapi.Owner](first)
	if !strings.HasPrefix(owner.Link.MustGet(), "https://booking.test/oauth/link/") || !strings.HasPrefix(owner.ID, "op_") {
		t.Errorf("invited %s", first.Body)
	}
	if again := p.call("POST", at+"/owners", `{"email":"ada@example.com","name":"Ada"}`, "Idempotency-Key", "o").is(201); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("replayed %s", again.Body)
	}
	p.call("POST", at+"/owners", `{"email":"nonsense","name":"Ada"}`).is(422, "invalid_request", "email")
	keys := read[platformapi.APIKeyList](p.call("GET", at+"/api-keys?mode=live", "").is(200))
	if len(keys.Data) != 1 || keys.Data[0].Status != "active" || keys.Data[0].Name != "Till" {
		t.Errorf("keys %+v", keys)
	}
	if test := read[platformapi.APIKeyList](p.call("GET", at+"/api-keys?mode=test", "").is(200)); len(test.Data) != 0 {
		t.Errorf("test keys %+v", test)
	}
	p.call("GET", at+"/api-keys", "").is(422, "invalid_request", "mode")
	p.call("POST", elsewhere+"/api-keys/"+keys.Data[0].ID+"/revoke", "").is(404, "key_not_found")
	p.call("POST", at+"/api-keys/nonsense/revoke", "").is(404, "key_not_found")
	for range 2 {
		if k := read[platformapi.APIKey](p.call("POST", at+"/api-keys/"+keys.Data[0].ID+"/revoke", "").is(200)); k.Status != "revoked" || k.RevokedAt.IsNull() {
			t.Errorf("revoked %+v", k)
		}
	}
	p.do(ctx, "GET", "/me").is(200) // identity itself does not reject it; the gateways do, by the published state
}

// Limits are replaced as a whole, and the response names a limit that is not allowed.
func TestPlatformLimits(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, tenant, _ := p.keyed("live", "all")
	at := "/tenants/" + tenant.ID.String() + "/limits"
	if got := read[platformapi.Limits](p.call("GET", at, "").is(200)); !got.RequestsPerMinute.IsNull() || len(got.Caps) != 0 {
		t.Errorf("at first %+v", got)
	}
	got := read[platformapi.Limits](p.call("PUT", at, `{"requests_per_minute":9000,"caps":{"units":3000}}`, "If-Match", `"1"`).is(200))
	if got.RequestsPerMinute.MustGet() != 9000 || !got.CredentialRequestsPerMinute.IsNull() || got.Caps["units"] != 3000 {
		t.Errorf("set %+v", got)
	}
	p.call("PUT", at, `{}`, "If-Match", `"1"`).is(412, "version_mismatch")
	p.call("PUT", at, `{"caps":{"colors":1}}`).is(422, "invalid_request", "caps.colors")
	p.call("PUT", at, `{"requests_per_minute":0}`).is(422, "invalid_request", "requests_per_minute")
	if got := read[platformapi.Limits](p.call("PUT", at, `{"credential_requests_per_minute":60}`).is(200)); !got.RequestsPerMinute.IsNull() || len(got.Caps) != 0 {
		t.Errorf("replaced %+v", got)
	}
}

// Only a platform key with the operation's scope is accepted. A key of the public API is not.
func TestPlatformKeys(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, _, public := p.keyed("live", "all")
	for name, tc := range map[string]struct{ header, code string }{
		"none": {"", "missing_credential"}, "another scheme": {"Basic eA==", "missing_credential"}, "malformed": {"Bearer svc_platform_x", "invalid_credential"},
		"a public key": {"Bearer " + public, "invalid_credential"}, "unknown": {"Bearer " + flip(p.key), "invalid_credential"},
	} {
		if a := p.call("GET", "/tenants", "", "Authorization", tc.header).is(401, tc.code); a.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	spec, err := contract.LoadDirect(proto.Platform, "identity")
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, op := range spec.Operations() {
		needed[op.Scopes[0]] = true
		var rest []string
		for _, scope := range domain.PlatformScopes {
			if scope != op.Scopes[0] {
				rest = append(rest, scope)
			}
		}
		key := p.newKey(strings.Join(rest, ","))
		path := strings.NewReplacer("{id}", "tn_00000000000000000000000000", "{key}", "key_1").Replace(op.Path)
		body := ""
		if op.Method != http.MethodGet {
			body = `{}`
		}
		p.call(op.Method, path, body, "Authorization", "Bearer "+key).is(403, "insufficient_scope")
	}
	needed["manage:owners"] = true // inviteOwner needs it while an owner can sign in
	if len(needed) != len(domain.PlatformScopes) {
		t.Errorf("the operations need %v, the scopes are %v", needed, domain.PlatformScopes)
	}
	k, secret, err := p.app.CreatePlatformKey(t.Context(), platformTeam, "short-lived", "read:tenants")
	if err != nil {
		t.Fatal(err)
	}
	p.call("GET", "/tenants", "", "Authorization", "Bearer "+secret).is(200)
	for range 2 {
		if k, err = p.app.RevokePlatformKey(t.Context(), platformTeam, k.ID); err != nil || k.RevokedAt == nil || *k.RevokedBy != "cli test" || k.LastUsedAt == nil {
			t.Errorf("%+v, %v", k, err)
		}
	}
	p.call("GET", "/tenants", "", "Authorization", "Bearer "+secret).is(401, "revoked_credential")
}

// flip returns a well-formed secret that no key has.
func flip(secret string) string {
	other := []byte(secret[:len(secret)-6])
	last := &other[len(other)-1]
	if *last == 'a' {
		*last = 'b'
	} else {
		*last = 'a'
	}
	return apikey.Sum(string(other))
}

// There are at most 100 platform keys that are not revoked, and a revocation makes room.
func TestPlatformKeyPlaces(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.Exec(`insert into platform_keys (id, name, hash, scopes, created_at, created_by)
		select gen_random_uuid(), 'x', sha256(n::text::bytea), '{}', now(), 'x' from generate_series(1, 98) n`)
	last, _, err := p.app.CreatePlatformKey(t.Context(), platformTeam, "the hundredth", "all")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.app.CreatePlatformKey(t.Context(), platformTeam, "one more", "all"); apperr.As(err).Code != "limit_reached" {
		t.Errorf("one more: %v", err)
	}
	if _, err := p.app.RevokePlatformKey(t.Context(), platformTeam, last.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.app.CreatePlatformKey(t.Context(), platformTeam, "one more", "all"); err != nil {
		t.Error(err)
	}
}

// TestPlatformFirstOwner checks that a key without manage:owners adds an owner only while no owner can sign in.
func TestPlatformFirstOwner(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	created := read[platformapi.Tenant](p.call("POST", "/tenants", newTenant).is(201))
	at := "/tenants/" + created.ID + "/owners"
	limited := "Bearer " + p.newKey("invite:owners")
	invite := func(name, key string) platformResponse {
		return p.call("POST", at, `{"email":"`+name+`@example.com","name":"N"}`, "Authorization", key)
	}
	first := read[platformapi.Owner](invite("one", limited).is(201))
	invite("two", limited).is(201) // the first one has no password yet
	link := first.Link.MustGet()
	if _, err := p.app.UseLink(t.Context(), platformTeam, link[strings.LastIndex(link, "/")+1:], "correct horse battery staple"); err != nil {
		t.Fatal(err)
	}
	invite("three", limited).is(403, "insufficient_scope")
	invite("two", limited).is(403, "insufficient_scope") // a new link for an invited owner is the same
	invite("three", "Bearer "+p.newKey("invite:owners,manage:owners")).is(201)
	if _, _, err := p.app.DisableOperator(t.Context(), platformTeam, "one@example.com"); err != nil {
		t.Fatal(err)
	}
	invite("four", limited).is(201)
}

// TestPlatformVerifiesApps checks that the platform verifies an app of a tenant, ends the verification, and finds no other app.
func TestPlatformVerifiesApps(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenant, err := ids.Parse[ids.TenantPrefix](read[platformapi.Tenant](p.call("POST", "/tenants", newTenant).is(201)).ID)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.app.CreateApp(t.Context(), platformTeam, tenant, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://till.example/cb"}), Published: patch.Value(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	at := "/apps/" + a.ID.String()
	p.call("POST", at+"/verify", "", "Authorization", "Bearer "+p.newKey("write:tenants")).is(403, "insufficient_scope")
	first := p.call("POST", at+"/verify", "", "Idempotency-Key", "v").is(200)
	if got := read[platformapi.App](first); got.ID != a.ID.String() || got.TenantID != tenant.String() || got.VerifiedAt.IsNull() || got.Publisher == "" {
		t.Errorf("%s", first.Body)
	}
	if again := p.call("POST", at+"/verify", "", "Idempotency-Key", "v").is(200); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("a repeated request: %s", again.Body)
	}
	if got := read[platformapi.App](p.call("POST", at+"/unverify", "").is(200)); !got.VerifiedAt.IsNull() {
		t.Errorf("%+v", got)
	}
	self, err := p.app.RegisterApp(t.Context(), "Claude", []string{"https://claude.example/cb"}, []string{"read:bookings"}, "n")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"nonsense", domain.NewAppID().String(), self.ID.String()} {
		p.call("POST", "/apps/"+id+"/verify", "").is(404, "app_not_found")
	}
}
