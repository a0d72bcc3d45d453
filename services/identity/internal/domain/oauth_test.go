package domain

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"
)

// cells maps each scope and permission to the roles that have it: o is owner, a admin, s staff, v viewer.
var cells = map[string]string{
	"read:bookings": "oasv", "write:bookings": "oas", "read:customers": "oasv", "write:customers": "oas", "read:leads": "oasv", "write:leads": "oas",
	"read:quotes": "oasv", "write:quotes": "oas", "read:invoices": "oasv", "write:invoices": "oas", "read:services": "oasv", "write:services": "oa",
	"read:units": "oasv", "write:units": "oa", "read:webhooks": "oa", "write:webhooks": "oa", "payments:read": "oasv", "payments:write": "oa",
	string(ManageOwners): "o", string(ManageOperators): "oa", string(ManageApps): "oa", string(ManageKeys): "oa", string(ManageSettings): "oa",
	string(ReadAudit): "oa", string(RevokeGrants): "oa",
}

// TestWhatEachRoleCanDo checks that each role has the permissions of its cells and no other.
func TestWhatEachRoleCanDo(t *testing.T) {
	t.Parallel()
	if len(cells) != len(proto.Scopes)+len(Permissions) {
		t.Errorf("%d cells, %d scopes and %d permissions", len(cells), len(proto.Scopes), len(Permissions))
	}
	for _, role := range Roles {
		granted := role.Scopes(proto.Scopes)
		for _, scope := range proto.Scopes {
			if want := strings.Contains(cells[scope], string(role)[:1]); slices.Contains(granted, scope) != want {
				t.Errorf("%s, %s: want %v", role, scope, want)
			}
			if got := role.Scopes([]string{scope}); len(got) == 1 != strings.Contains(cells[scope], string(role)[:1]) {
				t.Errorf("%s alone as %s: %v", scope, role, got)
			}
		}
		for _, p := range Permissions {
			if want := strings.Contains(cells[string(p)], string(role)[:1]); role.Can(p) != want {
				t.Errorf("%s, %s: want %v", role, p, want)
			}
		}
		if parsed, err := ParseRole(string(role)); err != nil || parsed != role {
			t.Errorf("%s: %v", parsed, err)
		}
	}
	if stranger := Role("root"); len(stranger.Scopes(proto.Scopes)) > 0 || stranger.Can(ReadAudit) {
		t.Error("an unknown role may do something")
	}
	if _, err := ParseRole("Owner"); err == nil {
		t.Error("a role is read in any case")
	}
}

// TestRedirectURIs checks that an app registers only redirect URIs on which no other party can listen.
func TestRedirectURIs(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://app.example/cb", "https://app.example", "https://app.example:8443/cb?a=b", "http://127.0.0.1/cb", "http://127.0.0.1:8000/cb", "http://[::1]/cb", "com.example.app:/cb", "com.example.app://host/cb",
	} {
		if err := CheckRedirectURI(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "x", "/cb", "//app.example/cb", "http://app.example/cb", "http://localhost/cb", "http://127.0.0.2/cb", "https:///cb", "https://user@app.example/cb", "https://app.example/cb#x", "https://app.example/cb#",
		"https://*.example/cb", "https://App.example/cb", "https://app.example./cb", "https://app.exаmple/cb", "https://a;b.example/cb", "https://a,b.example/cb", "https://a'b.example/cb", "https://a(b).example/cb", "com.example.app://a;b/cb", "https://app.example/c b", "https://app.example/\x00", "myapp:/cb", "javascript:alert(1)", "data:text/html,x",
		"https://app.example/" + strings.Repeat("x", 2000),
	} {
		if err := CheckRedirectURI(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestAppNames checks that the name of an app is one visible line of 60 characters that nobody takes for the platform.
func TestAppNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", strings.Repeat("x", 61), " \u200b", "Sync\nAllow everything", "\u202eelgooG",
		"Holdfast", "holdfast command line", "HOLD FAST", "Hold-fast Sync", "Hólḋfast", "H0ldfast", "Hоldfаst", "Hoidfast", "ＨＯＬＤＦＡＳＴ", "Official: Holdfast.",
	} {
		if CheckAppName(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{"a", strings.Repeat("é", 60), "Till & <Co>", "Household", "Steadfast Sync", "Claude Code (bookings)", "予約"} {
		if err := CheckAppName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestCheckApp(t *testing.T) {
	t.Parallel()
	good := App{Name: "a", RedirectURIs: []string{"https://app.example/cb"}, Scopes: []string{"read:bookings"}, ReuseLeewaySeconds: 10}
	if err := CheckApp(good); err != nil {
		t.Fatal(err)
	}
	for field, edit := range map[string]func(a *App){
		"no redirect URI":  func(a *App) { a.RedirectURIs = nil },
		"21 redirect URIs": func(a *App) { a.RedirectURIs = slices.Repeat([]string{"https://app.example/cb"}, 21) },
		"no scope":         func(a *App) { a.Scopes = nil },
		"a long leeway":    func(a *App) { a.ReuseLeewaySeconds = 11 },
		"a negative one":   func(a *App) { a.ReuseLeewaySeconds = -1 },
	} {
		a := good
		if edit(&a); CheckApp(a) == nil {
			t.Errorf("%s is taken", field)
		}
	}
	if mine := ids.New[ids.TenantPrefix](); !(App{TenantID: mine}).Serves(mine) || (App{TenantID: mine}).Serves(ids.New[ids.TenantPrefix]()) || !(App{Published: true}).Serves(mine) {
		t.Error("an app serves its own tenant, and every one when it is published")
	}
}

// TestThrottle checks that the wait doubles with each failure after the free ones, up to a maximum.
func TestThrottle(t *testing.T) {
	t.Parallel()
	limit := Throttle{Free: 3, First: 2 * time.Second, Longest: 10 * time.Second}
	var got []time.Duration
	for n := range 8 {
		got = append(got, limit.Wait(n)/time.Second)
	}
	if want := []time.Duration{0, 0, 0, 2, 4, 8, 10, 10}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if AccountThrottle.Wait(1<<30) != AccountThrottle.Longest {
		t.Error("the wait has no end")
	}
}

// TestTokens checks that the tokens of a family share a part that identifies the family, and that their forms are distinguishable
// without a look-up.
func TestTokens(t *testing.T) {
	t.Parallel()
	first := NewRefreshToken("")
	second, other := NewRefreshToken(first), NewRefreshToken("")
	if !bytes.Equal(FamilyHash(first), FamilyHash(second)) || bytes.Equal(FamilyHash(first), FamilyHash(other)) || bytes.Equal(SecretHash(first), SecretHash(second)) {
		t.Error("families")
	}
	forms := []func(string) bool{IsAccessToken, IsRefreshToken, IsCode, func(s string) bool { _, ok := apikey.Valid(s); return ok }}
	for i, secret := range []string{NewAccessToken(), first, NewCode(), apikey.New("live")} {
		for j, is := range forms {
			if is(secret) != (i == j) {
				t.Errorf("%s: form %d", secret, j)
			}
		}
		if forms[i](secret[:len(secret)-1]) || forms[i](secret+"0") || forms[i](strings.Replace(secret, "svc_", "svc-", 1)) {
			t.Errorf("%s: another length or prefix is taken", secret)
		}
	}
}

func TestBrowserOrigins(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://app.example", "https://app.example:8443", "http://localhost:5173", "http://127.0.0.1:3000", "http://[::1]:3000", "http://localhost", "https://xn--bcher-kva.example",
	} {
		if err := CheckBrowserOrigin(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "null", "*", "https://*.example", "https://app.example/", "https://app.example/x", "https://app.example?x", "https://app.example#x", "https://App.example",
		"HTTPS://app.example", "https://u@app.example", "https://app.example.", "https://a;b.example", "https://a,b.example", "https://a'b.example", "https://app.example:443", "http://localhost:80", "http://app.example", "http://127.0.0.2",
		"https://", "app.example", "https:app.example", "com.example.app:/x", "https://app.example:", "https://bücher.example", "https://a b", "file://", "data:text/html,x",
		"https://" + strings.Repeat("a", 255) + ".example",
	} {
		if err := CheckBrowserOrigin(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := CheckApp(App{Name: "A", RedirectURIs: []string{"https://a.example/"}, Scopes: []string{"x"}, BrowserOrigins: slices.Repeat([]string{"https://a.example"}, 21)}); err == nil {
		t.Error("21 origins are taken")
	}
}
