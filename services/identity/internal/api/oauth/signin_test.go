package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

func (b *browser) cookie(name string) string {
	u, _ := url.Parse(b.w.server.URL)
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) plant(name, value string) {
	u, _ := url.Parse(b.w.server.URL)
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// owner returns a connection of the database's owner, which can read all rows.
func (w *world) owner() *pgx.Conn {
	w.t.Helper()
	if w.conn != nil {
		return w.conn
	}
	conn, err := pgx.Connect(w.t.Context(), w.db.OwnerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) })
	w.conn = conn
	return conn
}

// try tries to sign in and returns the response.
func (b *browser) try(email, with string) *page {
	b.w.t.Helper()
	return b.submit(b.get("/oauth/sign-in?"+b.w.request().Encode()), "email", email, "password", with)
}

// TestWrongSignIns checks that a wrong password, an unknown account, and a disabled account get the same response.
func TestWrongSignIns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invite(w.tenant, "gone@example.com", "staff")
	if _, _, err := w.app.DisableOperator(t.Context(), by, "gone@example.com"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{w.operator.Email, "not my password"}, {"nobody@example.com", password}, {"gone@example.com", password}, {"", ""}} {
		if p := w.browser().try(c[0], c[1]); p.StatusCode != 422 || !strings.Contains(p.body, "The email address or the password is incorrect.") || strings.Contains(p.body, c[1]) && c[1] != "" {
			t.Errorf("%q: %d", c[0], p.StatusCode)
		}
	}
	if p := w.browser().try("DANA@example.COM", password); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the address in capitals: %d", p.StatusCode)
	}
}

// TestSignInsAreThrottled checks that attempts with wrong passwords wait longer and longer, even in parallel. The account is never
// locked: the owner can sign in with their own browser.
func TestSignInsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own, thief := w.browser(), w.browser()
	own.signIn(w.request(), w.operator.Email)
	for i := range 5 {
		if p := thief.try(w.operator.Email, "wrong"); p.StatusCode != 422 {
			t.Fatalf("attempt %d: %d", i+1, p.StatusCode)
		}
	}
	p := thief.try(w.operator.Email, password)
	if wait, _ := strconv.Atoi(p.Header.Get("Retry-After")); p.StatusCode != 429 || wait < 1 || wait > 3 {
		t.Errorf("%d, Retry-After %q", p.StatusCode, p.Header.Get("Retry-After"))
	}
	if p := w.browser().try(w.operator.Email, password); p.StatusCode != 429 { // another browser of the same thief
		t.Errorf("%d", p.StatusCode)
	}
	if p := own.try(w.operator.Email, password); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the owner's browser: %d", p.StatusCode)
	}
	w.pass(3 * time.Second)
	if p := thief.try(w.operator.Email, "wrong"); p.StatusCode != 422 {
		t.Errorf("after the wait: %d", p.StatusCode)
	}
	if p := thief.try(w.operator.Email, "wrong"); p.StatusCode != 429 {
		t.Errorf("one attempt after the wait: %d", p.StatusCode)
	}
	w.pass(5 * time.Second)
	if p := w.browser().try(w.operator.Email, password); p.StatusCode != http.StatusSeeOther { // the account is never locked
		t.Errorf("%d", p.StatusCode)
	}
	var lines int
	if err := w.owner().QueryRow(t.Context(), `select count(*) from audit_log where action = 'operator.sign_in_delayed'`).Scan(&lines); err != nil || lines != 1 {
		t.Errorf("%d lines: %v", lines, err)
	}
}

// TestAnAddressIsThrottled checks that an address that tries many accounts must also wait. The wait for an account that does not
// exist is the same.
func TestAnAddressIsThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.header.Set("X-Forwarded-For", "2001:db8::1")
	statuses := map[int]int{}
	for i := range 32 {
		b.header.Set("X-Forwarded-For", "2001:db8::"+strconv.Itoa(i+1)) // the same network
		statuses[b.try("nobody"+strconv.Itoa(i)+"@example.com", "wrong").StatusCode]++
	}
	if statuses[422] != 30 || statuses[429] != 2 {
		t.Errorf("%v", statuses)
	}
	other := w.browser()
	for range 5 {
		other.try("nobody@example.com", "wrong")
	}
	if p := other.try("nobody@example.com", "wrong"); p.StatusCode != 429 {
		t.Errorf("an unknown account does not wait: %d", p.StatusCode)
	}
}

// TestSecondFactor checks that a second factor is requested if there is one, and that a code and a recovery code each work once.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := app.NewFactor()
	now, err := totp.GenerateCode(secret, w.now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.SetFactor(t.Context(), by, w.operator.ID, secret, "000000"); err == nil && now != "000000" {
		t.Error("a wrong code sets the factor")
	}
	codes, err := w.app.SetFactor(t.Context(), by, w.operator.ID, secret, now)
	if err != nil || len(codes) != 10 {
		t.Fatalf("%v: %v", codes, err)
	}
	b := w.browser()
	codePage := func() *page { return b.follow(b.try(w.operator.Email, password)) }
	form := codePage()
	if p := b.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the password alone is enough: %d", p.StatusCode)
	}
	if p := b.submit(form, "code", now); p.StatusCode != 422 { // it was used to set the factor
		t.Errorf("a used code: %d", p.StatusCode)
	}
	w.pass(time.Minute)
	next, _ := totp.GenerateCode(secret, w.now())
	if p := b.submit(form, "code", next); p.StatusCode != http.StatusSeeOther {
		t.Errorf("a code: %d", p.StatusCode)
	}
	if p := b.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != 200 {
		t.Errorf("signed in: %d", p.StatusCode)
	}
	if p := b.submit(codePage(), "code", strings.ToUpper(codes[0])); p.StatusCode != http.StatusSeeOther {
		t.Errorf("a recovery code: %d", p.StatusCode)
	}
	if p := b.submit(codePage(), "code", codes[0]); p.StatusCode != 422 {
		t.Errorf("a used recovery code: %d", p.StatusCode)
	}
	wrong := codePage()
	for range domain.BrowserThrottle.Free {
		b.submit(wrong, "code", "111111")
	}
	if p := b.submit(wrong, "code", "111111"); p.StatusCode != 429 {
		t.Errorf("codes are not throttled: %d", p.StatusCode)
	}
	if p := b.submit(wrong, "code", codes[1]); p.StatusCode != http.StatusSeeOther {
		t.Errorf("a recovery code waits: %d", p.StatusCode)
	}
}

// TestOneTimeLinks checks that a one-time link sets a password that the policy allows, once, within a day, and ends all sessions.
func TestOneTimeLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signedIn := w.browser()
	signedIn.signIn(w.request(), w.operator.Email)
	link := func() string {
		_, token, err := w.app.ResetOperator(t.Context(), by, w.operator.Email, false)
		if err != nil {
			t.Fatal(err)
		}
		return "/oauth/link/" + token
	}
	old, path := link(), link()
	b := w.browser()
	if p := b.get(old); p.StatusCode != 404 {
		t.Errorf("the link before: %d", p.StatusCode)
	}
	form := b.get(path)
	for bad, why := range map[string]string{
		"short": "12 to 256", "aaaaaaaaaaaaaaaa": "most common", "unbelievable": "most common", "PASSWORD1234": "most common", "dana is my name": "email", strings.Repeat("x1", 200): "12 to 256",
	} {
		if p := b.submit(form, "password", bad); p.StatusCode != 422 || !strings.Contains(p.body, why) {
			t.Errorf("%q: %d %s", bad, p.StatusCode, p.body)
		}
	}
	const fresh = "four words nobody guesses"
	if p := b.submit(form, "password", fresh); p.StatusCode != 200 {
		t.Fatalf("%d %s", p.StatusCode, p.body)
	}
	if p := b.submit(form, "password", fresh); p.StatusCode != 404 {
		t.Errorf("twice: %d", p.StatusCode)
	}
	if p := signedIn.get("/oauth/authorize?" + w.request().Encode()); p.StatusCode != http.StatusSeeOther {
		t.Errorf("a session from before: %d", p.StatusCode)
	}
	if p := w.browser().try(w.operator.Email, password); p.StatusCode != 422 {
		t.Errorf("the old password: %d", p.StatusCode)
	}
	if p := w.browser().try(w.operator.Email, fresh); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the new password: %d", p.StatusCode)
	}
	late := link()
	w.pass(24 * time.Hour)
	if p := b.get(late); p.StatusCode != 404 {
		t.Errorf("after a day: %d", p.StatusCode)
	}
}

// TestAccount checks that an operator can see and end their sessions, and set up their second factor, soon after the sign-in.
func TestAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phone, laptop := w.browser(), w.browser()
	if p := laptop.get("/oauth/account"); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != "/oauth/sign-in?to=/oauth/account" {
		t.Errorf("%d %s", p.StatusCode, p.Header.Get("Location"))
	}
	laptop.header.Set("User-Agent", "Laptop <1>")
	phone.header.Set("User-Agent", "Phone")
	enter := func(b *browser) *page {
		return b.follow(b.submit(b.get("/oauth/sign-in?to=/oauth/account"), "email", w.operator.Email, "password", password))
	}
	enter(phone)
	account := enter(laptop)
	if !strings.Contains(account.body, "Laptop &lt;1&gt;") || !strings.Contains(account.body, "Phone") || !strings.Contains(account.body, "198.51.100.7") {
		t.Errorf("%s", account.body)
	}
	do := func(b *browser, p *page, pairs ...string) *page {
		t.Helper()
		form := url.Values{"form": {formOf(p)}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return b.do(http.MethodPost, "/oauth/account", form)
	}
	if p := do(laptop, &page{}, "do", "end_others"); p.StatusCode != 400 {
		t.Errorf("without a form: %d", p.StatusCode)
	}
	setup := do(laptop, account, "do", "factor_begin")
	secret := between(setup.body, `<code class="key">`, "</code>")
	code, err := totp.GenerateCode(secret, w.now())
	if err != nil {
		t.Fatal(err)
	}
	if p := do(laptop, setup, "do", "factor_set", "code", "abc"); p.StatusCode != 422 {
		t.Errorf("a wrong code: %d", p.StatusCode)
	}
	set := do(laptop, setup, "do", "factor_set", "code", code)
	if set.StatusCode != 200 || strings.Count(set.body, "<li><code>") != 10 {
		t.Errorf("%d %s", set.StatusCode, set.body)
	}
	if p := laptop.get("/oauth/account"); strings.Contains(p.body, "<li><code>") || !strings.Contains(p.body, "you need a code from your authenticator app") {
		t.Errorf("%s", p.body)
	}
	if p := do(laptop, set, "do", "end_others"); strings.Contains(p.body, "Phone") || !strings.Contains(p.body, "Laptop") {
		t.Errorf("%s", p.body)
	}
	if p := phone.get("/oauth/account"); p.StatusCode != http.StatusSeeOther {
		t.Errorf("the other session: %d", p.StatusCode)
	}
	w.pass(16 * time.Minute)
	fresh := laptop.get("/oauth/account")
	if p := do(laptop, fresh, "do", "factor_end"); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != "/oauth/sign-in?to=/oauth/account" {
		t.Errorf("long after the sign-in: %d %s", p.StatusCode, p.Header.Get("Location"))
	}
	second := laptop.follow(laptop.submit(laptop.get("/oauth/sign-in?to=/oauth/account"), "email", w.operator.Email, "password", password))
	code, _ = totp.GenerateCode(secret, w.now())
	again := laptop.follow(laptop.submit(second, "code", code))
	if p := do(laptop, again, "do", "factor_end"); p.StatusCode != 200 || !strings.Contains(p.body, "Protect your account") {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	if p := laptop.do(http.MethodPost, "/oauth/sign-out", url.Values{}); p.StatusCode != 200 {
		t.Errorf("%d", p.StatusCode)
	}
	if p := laptop.get("/oauth/account"); p.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: %d", p.StatusCode)
	}
}

// TestGrantsOfAnAccount checks that an operator can see which apps act for them at any tenant, and end the access of one. They
// cannot end the grants of others.
func TestGrantsOfAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, stranger := w.browser(), w.browser()
	granted := w.exchange(b.allow(w.request("scope", "read:bookings"), w.operator.Email).Get("code")).is(t, 200, "")
	w.sent(b.submit(b.get("/oauth/authorize?"+w.request().Encode()), "mode", "test", "decision", "allow")) // a code that is never exchanged
	w.invite(w.tenant, "other@example.com", "owner")
	others := stranger.follow(stranger.submit(stranger.get("/oauth/sign-in?to=/oauth/account"), "email", "other@example.com", "password", password))
	account := b.get("/oauth/account")
	id := between(account.body, `<input type="hidden" name="id" value="gr_`, `"`)
	if strings.Count(account.body, `value="gr_`) != 1 || !strings.Contains(account.body, "Till &amp; &lt;Co&gt;") || !strings.Contains(account.body, "<code>read:bookings</code>") ||
		!strings.Contains(account.body, "Test data") || strings.Contains(others.body, `value="gr_`) {
		t.Errorf("%s\n%s", account.body, others.body)
	}
	end := url.Values{"do": {"end_grant"}, "id": {"gr_" + id}}
	for _, wrong := range []string{"", "gr_" + id[:len(id)-1], "nonsense"} {
		b.do(http.MethodPost, "/oauth/account", url.Values{"form": {formOf(account)}, "do": {"end_grant"}, "id": {wrong}})
	}
	end.Set("form", formOf(others))
	if p := stranger.do(http.MethodPost, "/oauth/account", end); p.StatusCode != 200 {
		t.Errorf("a stranger: %d", p.StatusCode)
	}
	if p := b.do(http.MethodPost, "/oauth/account", url.Values{"do": {"end_grant"}, "id": {"gr_" + id}}); p.StatusCode != 400 {
		t.Errorf("without a form token: %d", p.StatusCode)
	}
	if _, ok := w.alive(granted.Access); !ok {
		t.Error("the grant was ended by somebody else")
	}
	end.Set("form", formOf(account))
	if p := b.do(http.MethodPost, "/oauth/account", end); p.StatusCode != 200 || !strings.Contains(p.body, "No connected apps.") {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	if _, ok := w.alive(granted.Access); ok {
		t.Error("the access token works")
	}
	w.refresh(granted.Refresh).is(t, 400, "invalid_grant")
}

// TestAnOperatorIsErased checks that personal data of an operator is deleted with their erasure: they cannot sign in or be enabled,
// their grants end, and no table contains their address or name.
func TestAnOperatorIsErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	granted := w.granted()
	w.invite(w.tenant, "other@example.com", "owner")
	w.invite(w.newTenant("Bikes"), w.operator.Email, "staff")
	for range 2 { // an erasure that crashed after the first part is repeated
		if _, _, err := w.app.DisableOperator(t.Context(), by, w.operator.Email); err != nil {
			t.Fatal(err)
		}
	}
	if _, published, err := w.app.EraseOperator(t.Context(), by, w.operator.Email); err != nil || !published {
		t.Fatalf("%v %v", published, err)
	}
	if _, ok := w.alive(granted.Access); ok {
		t.Error("its app's token works")
	}
	if p := w.browser().try(w.operator.Email, password); p.StatusCode != 422 {
		t.Errorf("signing in: %d", p.StatusCode)
	}
	if _, _, err := w.app.EraseOperator(t.Context(), by, w.operator.Email); !errors.Is(err, domain.ErrOperatorNotFound) {
		t.Errorf("again: %v", err)
	}
	for _, table := range w.rows(`select relname::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`) {
		for _, word := range []string{w.operator.Email, w.operator.Name} {
			for _, row := range w.rows(`select x::text from `+table+` x where x::text ilike '%' || $1 || '%'`, word) {
				if !strings.Contains(row, "other@example.com") {
					t.Errorf("%s: %s", table, row)
				}
			}
		}
	}
	if left := w.rows(`select operator_id::text from memberships where ended_at is null`); len(left) != 1 {
		t.Errorf("%d memberships", len(left))
	}
	if _, token, err := w.app.InviteOperator(t.Context(), by, app.Invitation{Tenant: w.tenant.ID, Email: w.operator.Email, Name: "Dana", Role: "staff"}); err != nil || token == "" {
		t.Errorf("the same person cannot be invited again: %v", err)
	}
}

func between(s, from, to string) string {
	_, rest, _ := strings.Cut(s, from)
	out, _, _ := strings.Cut(rest, to)
	return out
}

// TestWhereASignInLeads checks that a sign-in redirects the operator to the page of the console that requested it, and to no other
// host or page.
func TestWhereASignInLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for to, want := range map[string]string{
		"":                                "/admin",
		"/admin":                          "/admin",
		"/admin/demo/test/today?days=90":  "/admin/demo/test/today?days=90",
		"/oauth/account":                  "/oauth/account",
		"//evil.example/admin":            "/admin",
		"https://evil.example/admin":      "/admin",
		`/admin\..\\evil.example`:         "/admin",
		"/admin/../oauth/authorize":       "/admin",
		"/admin/%2e%2e/oauth/authorize":   "/admin",
		"/adminx":                         "/admin",
		"/oauth/authorize?client_id=evil": "/admin",
		"javascript:alert(1)":             "/admin",
		"/admin//evil.example":            "/admin",
	} {
		query := url.Values{"to": {to}}
		if to == "" {
			query = nil
		}
		b := w.browser()
		if p := b.submit(b.get("/oauth/sign-in?"+query.Encode()), "email", w.operator.Email, "password", password); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != want {
			t.Errorf("%q: %d %q, want %q", to, p.StatusCode, p.Header.Get("Location"), want)
		}
		// The form is shown again to an operator who has signed in already, so the password is requested again.
		if p := b.get("/oauth/sign-in?" + query.Encode()); p.StatusCode != http.StatusOK || !strings.Contains(p.body, `name="password"`) {
			t.Errorf("%q: the form is not shown again: %d", to, p.StatusCode)
		}
	}
}
