package oauth_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/crypt"

	"holdfast.dev/services/identity/internal/app"
)

// outbox stores the messages that are sent.
type outbox struct {
	mu   sync.Mutex
	sent []message // guarded by mu
}

type message struct{ to, subject, text string }

func (o *outbox) Send(_ context.Context, to, subject, text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, message{to, subject, text})
	return nil
}

func (o *outbox) all() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]message(nil), o.sent...)
}

// mails configures mail, and starts the server again. The links that people request are mailed when deliver is called.
func (w *world) mails() (mail *outbox, deliver func()) {
	w.t.Helper()
	box, err := crypt.NewBox("k1:" + strings.Repeat("cd", 32))
	if err != nil {
		w.t.Fatal(err)
	}
	mail = &outbox{}
	w.app.Mailer = mail
	w.resets = app.NewPasswordResets(w.app)
	w.serve(box)
	w.app.AuthURL = w.server.URL
	return mail, func() {
		w.t.Helper()
		ctx, cancel := context.WithCancel(w.t.Context())
		done := make(chan error, 1)
		go func() { done <- w.resets.Run(ctx) }()
		for deadline := time.Now().Add(30 * time.Second); w.resets.Waiting() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				w.t.Fatal("links wait")
			}
		}
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// forgets requests a link for an address.
func (b *browser) forgets(email string) *page {
	b.w.t.Helper()
	return b.submit(b.get("/oauth/forgot-password"), "email", email)
}

// linkIn returns the path of the link in a message.
func linkIn(t *testing.T, m message) string {
	t.Helper()
	_, rest, ok := strings.Cut(m.text, "/oauth/link/")
	token, _, _ := strings.Cut(rest, "\n")
	if !ok || token == "" {
		t.Fatalf("no link in %q", m.text)
	}
	return "/oauth/link/" + token
}

const newPassword = "another battery staple horse"

// TestForgotPassword checks that a mailed link sets a new password once, ends all sessions, and keeps the second factor.
func TestForgotPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mail, deliver := w.mails()
	if p := w.browser().get("/oauth/sign-in"); !strings.Contains(p.body, `href="/oauth/forgot-password"`) {
		t.Errorf("the sign-in page has no link: %s", p.body)
	}
	if _, err := w.owner().Exec(t.Context(), `update operators set proven_at = now() where email = $1`, w.operator.Email); err != nil {
		t.Fatal(err)
	}
	own := w.browser()
	own.signIn(w.request(), w.operator.Email)
	if _, err := w.owner().Exec(t.Context(), `update operators set totp_secret = 'x' where email = $1`, w.operator.Email); err != nil {
		t.Fatal(err)
	}
	german := w.browser()
	german.header.Set("Accept-Language", "de")
	if p := german.forgets(strings.ToUpper(w.operator.Email)); p.StatusCode != 200 || !strings.Contains(p.body, "Er ist eine Stunde lang gültig.") {
		t.Fatalf("%d %s", p.StatusCode, p.body)
	}
	deliver()
	sent := mail.all()
	if len(sent) != 1 || sent[0].to != w.operator.Email || sent[0].subject != "Neues Passwort festlegen" || strings.Contains(sent[0].text, "..") {
		t.Fatalf("%+v", sent)
	}
	if n := w.count(`select count(*) from audit_log where action = 'operator.reset' and source = '198.51.100.7'`); n != 1 {
		t.Errorf("%d audit records", n)
	}
	if n := w.count(`select count(*) from operator_links where expires_at < now() + interval '61 minutes' and octet_length(hash) = 32`); n != 1 {
		t.Errorf("%d short-lived links, stored as a hash", n)
	}
	at := linkIn(t, sent[0])
	if p := own.submit(own.get(at), "password", newPassword); p.StatusCode != 200 {
		t.Fatalf("%d %s", p.StatusCode, p.body)
	}
	if n := w.count(`select count(*) from operators where email = 'dana@example.com' and totp_secret is not null`); n != 1 {
		t.Error("the second factor is gone")
	}
	if p := own.get("/oauth/account"); p.StatusCode != 303 || !strings.Contains(p.Header.Get("Location"), "/oauth/sign-in") {
		t.Errorf("the session continues: %d", p.StatusCode)
	}
	if p := w.browser().get(at); p.StatusCode != 404 {
		t.Errorf("the link works twice: %d", p.StatusCode)
	}
	if p := w.browser().try(w.operator.Email, password); p.StatusCode != 422 {
		t.Errorf("the old password: %d", p.StatusCode)
	}
	if p := w.browser().try(w.operator.Email, newPassword); p.StatusCode != 303 || !strings.Contains(p.Header.Get("Location"), "second-factor") {
		t.Errorf("the new password: %d %s", p.StatusCode, p.Header.Get("Location"))
	}
}

// TestForgotPasswordRevealsNothing checks that an unknown address, a disabled operator and one with an account get the same response, that
// only the last gets a message, and that a link ends after an hour.
func TestForgotPasswordRevealsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if p := w.browser().get("/oauth/sign-in"); strings.Contains(p.body, "forgot-password") {
		t.Error("without mail, the sign-in page has a link")
	}
	if p := w.browser().get("/oauth/forgot-password"); p.StatusCode != 404 {
		t.Errorf("without mail: %d", p.StatusCode)
	}
	mail, deliver := w.mails()
	w.invite(w.tenant, "gone@example.com", "staff")
	if _, _, err := w.app.DisableOperator(t.Context(), by, "gone@example.com"); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, email := range []string{"nobody@example.com", "gone@example.com", w.operator.Email} {
		p := w.browser().forgets(email)
		if p.StatusCode != 200 {
			t.Errorf("%s: %d", email, p.StatusCode)
		}
		bodies = append(bodies, strings.ReplaceAll(p.body, email, ""))
	}
	if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("the responses differ: %q", bodies)
	}
	deliver()
	sent := mail.all()
	if len(sent) != 1 || sent[0].to != w.operator.Email {
		t.Fatalf("%+v", sent)
	}
	w.pass(61 * time.Minute)
	if p := w.browser().get(linkIn(t, sent[0])); p.StatusCode != 404 {
		t.Errorf("after an hour: %d", p.StatusCode)
	}
}

// TestForgotPasswordIsThrottled checks that requests for one address, and those of one network, must wait, and that the responses to an
// unknown address are the same.
func TestForgotPasswordIsThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mail, deliver := w.mails()
	from := func(network string) *browser {
		b := w.browser()
		b.header.Set("X-Forwarded-For", network)
		return b
	}
	for i, want := range []int{200, 200, 200, 429} {
		for _, email := range []string{w.operator.Email, "nobody@example.com"} {
			if p := from(fmt.Sprintf("203.0.113.%d", i)).forgets(email); p.StatusCode != want {
				t.Errorf("%s, request %d: %d, want %d", email, i+1, p.StatusCode, want)
			}
		}
	}
	for i := range 21 {
		want := 200
		if i == 20 {
			want = 429
		}
		if p := from("198.51.100.99").forgets(fmt.Sprintf("n%d@example.com", i)); p.StatusCode != want {
			t.Errorf("request %d of a network: %d, want %d", i+1, p.StatusCode, want)
		}
	}
	deliver()
	if sent := mail.all(); len(sent) != 3 {
		t.Errorf("%d messages", len(sent))
	}
	if n := w.count(`select count(*) from operator_links`); n != 1 {
		t.Errorf("%d links: a new one replaces the one before", n)
	}
}

// TestForgotPasswordOfAnUnprovenAddress checks that the mailed link removes what another person could have set up.
func TestForgotPasswordOfAnUnprovenAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mail, deliver := w.mails()
	if _, err := w.owner().Exec(t.Context(), `update operators set proven_at = null, totp_secret = 'x' where email = $1`, w.operator.Email); err != nil {
		t.Fatal(err)
	}
	w.browser().forgets(w.operator.Email)
	deliver()
	b := w.browser()
	if p := b.submit(b.get(linkIn(t, mail.all()[0])), "password", newPassword); p.StatusCode != 200 {
		t.Fatalf("%d %s", p.StatusCode, p.body)
	}
	if n := w.count(`select count(*) from operators where email = 'dana@example.com' and totp_secret is null and proven_at is not null`); n != 1 {
		t.Error("the second factor of an unproven address stays")
	}
}

func (w *world) count(sql string) (n int) {
	w.t.Helper()
	if err := w.owner().QueryRow(w.t.Context(), sql).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}
