package oauth_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// versionOf returns the version of an operator.
func (w *world) versionOf(id domain.OperatorID) int64 {
	w.t.Helper()
	o, err := store.Operator(w.t.Context(), w.db.App.Read(w.t.Context()), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return o.Version
}

// factor sets up a second factor of the operator, and returns the next code and the recovery codes.
func (w *world) factor() (next func() string, recovery []string) {
	w.t.Helper()
	secret := app.NewFactor()
	next = func() string {
		w.t.Helper()
		w.pass(time.Minute) // each step works once
		code, err := totp.GenerateCode(secret, w.now())
		if err != nil {
			w.t.Fatal(err)
		}
		return code
	}
	recovery, err := w.app.SetFactor(w.t.Context(), by, w.operator.ID, secret, next())
	if err != nil {
		w.t.Fatal(err)
	}
	return next, recovery
}

// TestThePasswordAloneBlocksNoSecondFactor checks a person who knows only the password and tries codes until they must wait, with
// one browser, with many, and from many networks. The operator can still sign in: in their own browser with a code, and in any
// other with a recovery code.
func TestThePasswordAloneBlocksNoSecondFactor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next, recovery := w.factor()
	half := func(b *browser) *page { return b.follow(b.try(w.operator.Email, password)) }
	enters := func(b *browser, code, what string) {
		t.Helper()
		if p := b.submit(half(b), "code", code); p.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d", what, p.StatusCode)
		}
	}
	own := w.browser()
	enters(own, next(), "at first")

	thief := w.browser()
	form, status := half(thief), 0
	for range domain.BrowserThrottle.Free + 1 {
		status = thief.submit(form, "code", "111111").StatusCode
	}
	if status != http.StatusTooManyRequests {
		t.Fatalf("one browser does not wait: %d", status)
	}
	enters(own, next(), "the own browser after one of the thief's")
	enters(w.browser(), next(), "a new browser after one of the thief's")

	at := w.now()
	wrong := func(browser, address string) error {
		_, err := w.app.SecondFactor(t.Context(), app.Factor{
			Operator: w.operator.ID, Version: w.versionOf(w.operator.ID), Code: "111111", Browser: browser, Address: address, By: by,
		})
		return err
	}
	for i := range domain.AddressThrottle.Free {
		_ = wrong(fmt.Sprint("b", i), "198.51.100.7")
	}
	if p := thief.submit(half(thief), "code", "111111"); p.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("one network does not wait: %d", p.StatusCode)
	}
	enters(w.browser(), recovery[0], "a new browser in the network of the thief")
	enters(own, next(), "the own browser in the network of the thief")

	for i := range domain.FactorThrottle.Free + 1 {
		_ = wrong(fmt.Sprint("c", i), fmt.Sprint("a", i))
	}
	if _, ok := wrong("d", "d").(*app.WaitError); !ok { //nolint:errorlint // it is not wrapped
		t.Fatal("an operator's codes are not counted over networks")
	}
	enters(w.browser(), recovery[1], "a new browser after many networks")
	enters(own, next(), "the own browser after many networks")
	if passed := w.now().Sub(at); passed > 10*time.Minute {
		t.Errorf("the waits were over: %s", passed)
	}
}

// TestASessionThatWaitsForItsFactorEnds checks that a session that waits for its second factor ends when the password changes,
// and after 15 minutes.
func TestASessionThatWaitsForItsFactorEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, recovery := w.factor()
	b := w.browser()
	form := b.follow(b.try(w.operator.Email, password))
	var left time.Duration
	if err := w.owner().QueryRow(t.Context(), `select max(expires_at) - now() from operator_sessions where operator_id is null`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(w.now()); left > domain.FactorTime+ahead {
		t.Errorf("it lasts %s", left)
	}
	_, token, err := w.app.ResetOperator(t.Context(), by, w.operator.Email, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.UseLink(t.Context(), by, token, "another long password"); err != nil {
		t.Fatal(err)
	}
	if p := b.submit(form, "code", recovery[0]); p.StatusCode != 422 {
		t.Errorf("the password of before is enough: %d", p.StatusCode)
	}
}

// TestSessionsAreLimited checks that an operator has at most 50 sessions, even with many parallel sign-ins. The oldest ends. A
// session that begins while the password changes is not written.
func TestSessionsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(n int, version int64) {
		t.Helper()
		hash := sha256.Sum256(fmt.Append(nil, n))
		at := w.now().Add(time.Duration(n) * time.Second)
		s := domain.Session{ID: domain.NewSessionID(), OperatorID: &w.operator.ID, Version: version, CreatedAt: at, SeenAt: at, ExpiresAt: at.Add(time.Hour)}
		if err := w.app.PutSession(t.Context(), hash[:], s, []byte("data"), false); err != nil {
			t.Error(err)
		}
	}
	version := w.versionOf(w.operator.ID)
	done := make(chan struct{})
	for n := range domain.MaxSessions + 5 {
		go func() { put(n, version); done <- struct{}{} }()
	}
	for range domain.MaxSessions + 5 {
		<-done
	}
	put(1000, version)
	put(1001, version-1)
	sessions, err := w.app.Sessions(t.Context(), w.operator.ID)
	if err != nil || len(sessions) != domain.MaxSessions {
		t.Fatalf("%d sessions: %v", len(sessions), err)
	}
	newest := sessions[0].SeenAt.Sub(w.now())
	if newest < 999*time.Second || newest > 1000*time.Second {
		t.Errorf("the newest is of %s", newest)
	}
	for _, s := range sessions {
		if s.SeenAt.Sub(w.now()) < 0 {
			t.Errorf("the oldest is there: %s", s.SeenAt)
		}
	}
}
