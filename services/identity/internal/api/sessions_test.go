package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// signedIn stores a session of an operator and returns its hash in hex. A nil operator means that the second factor is missing.
func (w *world) signedIn(o *domain.OperatorID, created, seen, expires time.Time) string {
	w.T.Helper()
	id := domain.NewSessionID()
	hash := sha256.Sum256([]byte(id.String()))
	s := domain.Session{ID: id, OperatorID: o, CreatedAt: created, SeenAt: seen, ExpiresAt: expires}
	err := w.app.DB.SystemTx(w.T.Context(), func(ctx context.Context, tx pg.Tx) error {
		return store.PutSession(ctx, tx, hash[:], s, []byte("data"))
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return hex.EncodeToString(hash[:])
}

// TestSessionsForTheConsole checks that the console receives the signed-in operator, with each of their current tenants and the
// permissions of their role there. A session identifies no operator if it has ended, waits for a second factor, or belongs to an
// operator who may not sign in.
func TestSessionsForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := domain.Origin{Actor: "cli", Source: "test"}
	_, first, _ := w.keyed("test", "all")
	_, second, _ := w.keyed("test", "all")
	_, left, _ := w.keyed("test", "all")
	var dana domain.Operator
	for _, m := range []struct {
		tenant domain.Tenant
		role   string
	}{{first, "staff"}, {second, "owner"}, {left, "admin"}} {
		dana = w.member(m.tenant, "dana@example.com", m.role)
	}
	for _, o := range []string{"keeper@example.com", "other@example.com"} {
		if _, _, err := w.app.InviteOperator(t.Context(), by, app.Invitation{Tenant: left.ID, Email: o, Name: "Erik", Role: "owner"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.app.RemoveOperator(t.Context(), by, app.MemberRef{Tenant: left.ID, Email: dana.Email}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	noTenant := in(t.Context(), func(c *caller.Caller) { *c = caller.Service("console", ids.Tenant{}, "") })
	lookup := func(hash string) response {
		return w.from(noTenant, "console", "POST", "/internal/v1/sessions/lookup", `{"hash":"`+hash+`"}`)
	}
	hash := w.signedIn(&dana.ID, now.Add(-time.Hour), now.Add(-time.Hour), now.Add(time.Hour))
	got := decode[internalapi.Session](lookup(hash).is(200))
	if got.Operator.ID != dana.ID.String() || got.Operator.Email != dana.Email || got.Operator.SecondFactor || got.SignedInAt.Sub(now.Add(-time.Hour)).Abs() > time.Second || len(got.Tenants) != 2 {
		t.Fatalf("%+v", got)
	}
	staff, owner := got.Tenants[0], got.Tenants[1]
	if staff.ID != first.ID.String() || staff.Role != "staff" || slices.Contains(staff.Scopes, "write:services") || !slices.Contains(staff.Scopes, "write:bookings") || len(staff.Permissions) != 0 {
		t.Errorf("%+v", staff)
	}
	if owner.ID != second.ID.String() || len(owner.Scopes) != 18 || len(owner.Permissions) != len(domain.Permissions) || owner.Timezone != second.Timezone || owner.Currency != second.Currency {
		t.Errorf("%+v", owner)
	}

	// Each use extends the session, to at most seven days after the sign-in.
	sessions, err := w.app.Sessions(t.Context(), dana.ID)
	if err != nil || len(sessions) != 1 || sessions[0].ExpiresAt.Sub(now) < domain.SessionIdle-time.Minute || now.Sub(sessions[0].SeenAt) > time.Minute {
		t.Errorf("%+v %v", sessions, err)
	}
	old := w.signedIn(&dana.ID, now.Add(-domain.SessionLifetime+time.Hour), now.Add(-time.Hour), now.Add(time.Minute))
	lookup(old).is(200)
	sessions, err = w.app.Sessions(t.Context(), dana.ID)
	if err != nil || len(sessions) != 2 || !slices.ContainsFunc(sessions, func(s domain.Session) bool { return s.ExpiresAt.Sub(now) < 61*time.Minute }) {
		t.Errorf("%+v %v", sessions, err)
	}

	for name, hash := range map[string]string{
		"over":                    w.signedIn(&dana.ID, now, now, now.Add(-time.Second)),
		"without a second factor": w.signedIn(nil, now, now, now.Add(time.Hour)),
		"unknown":                 hex.EncodeToString(make([]byte, 32)),
	} {
		t.Log(name)
		lookup(hash).is(404, "session_not_found")
	}
	if _, err := w.app.EndSessions(t.Context(), dana.ID, domain.SessionID{}, nil); err != nil {
		t.Fatal(err)
	}
	lookup(hash).is(404, "session_not_found")
	fresh := w.signedIn(&dana.ID, now, now, now.Add(time.Hour))
	if _, _, err := w.app.DisableOperator(t.Context(), by, dana.Email); err != nil {
		t.Fatal(err)
	}
	lookup(fresh).is(404, "session_not_found")
	lookup("xyz").is(422, "invalid_request", "hash")
	w.from(noTenant, "console", "POST", "/internal/v1/sessions/lookup", `{`).is(400, "malformed_json")
	for _, peer := range []string{"gateway", "bookings"} {
		w.from(noTenant, peer, "POST", "/internal/v1/sessions/lookup", `{"hash":"`+fresh+`"}`).is(401, "invalid_credential")
	}
}
