package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

const members = "/internal/v1/members"

func invitation(email, role string) string {
	return fmt.Sprintf(`{"email":%q,"name":"Erik","role":%q}`, email, role)
}

// memberRoles returns the members of a tenant as "address role".
func (w *world) memberRoles(ctx context.Context) (found []string) {
	w.T.Helper()
	for _, m := range decode[internalapi.MemberList](w.from(ctx, "console", "GET", members, "").is(200)).Data {
		found = append(found, m.Email+" "+m.Role)
	}
	return found
}

// TestWhoCanChangeMembers checks who may invite, change, and remove members: an admin may do so for everyone except owners, an
// owner for everyone. No role can assign a role that it does not manage.
func TestWhoCanChangeMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.newTenant()
	n := 0
	target := func(role domain.Role) domain.Operator {
		n++
		return w.member(tenant, fmt.Sprintf("m%d@example.com", n), string(role))
	}
	for _, actor := range domain.Roles {
		ctx := w.as(target(actor), tenant, caller.Test)
		canChange := func(from, to domain.Role) bool {
			if from == domain.Owner || to == domain.Owner {
				return actor == domain.Owner
			}
			return actor == domain.Owner || actor == domain.Admin
		}
		check := func(a response, what string, ok int, allowed bool) {
			t.Helper()
			if allowed {
				a.is(ok)
			} else {
				a.is(403, "insufficient_permission")
			}
			if t.Failed() {
				t.Fatalf("%s: %s", actor, what)
			}
		}
		for _, to := range domain.Roles {
			n++
			a := w.from(ctx, "console", "POST", members, invitation(fmt.Sprintf("m%d@example.com", n), string(to)))
			check(a, "invite as "+string(to), 201, canChange("", to))
			for _, from := range domain.Roles {
				path := members + "/" + target(from).ID.String()
				check(w.from(ctx, "console", "PATCH", path, `{"role":"`+string(to)+`"}`), "change "+string(from)+" to "+string(to), 200, canChange(from, to))
				again := invitation(target(from).Email, string(to))
				check(w.from(ctx, "console", "POST", members, again), "invite again "+string(from)+" as "+string(to), 201, canChange(from, to))
			}
			check(w.from(ctx, "console", "DELETE", members+"/"+target(to).ID.String(), ""), "remove "+string(to), 204, canChange(to, ""))
		}
	}
}

// TestMembersForTheConsole checks that the console invites, changes, and removes members of its own tenant, and that the audit
// log names the operator.
func TestMembersForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	got := decode[internalapi.InvitedMember](w.from(ctx, "console", "POST", members, invitation("erik@example.com", "staff")).is(201))
	erik := got.Member
	if got.LinkToken == nil || len(*got.LinkToken) != 32 || erik.Email != "erik@example.com" || erik.Name != "Erik" || erik.Role != "staff" || erik.State != "invited" || erik.SecondFactor ||
		!strings.HasPrefix(erik.ID, "op_") {
		t.Fatalf("%+v", got)
	}
	again := decode[internalapi.InvitedMember](w.from(ctx, "console", "POST", members, invitation("ERIK@example.com", "staff")).is(201))
	if again.Member.ID != erik.ID || again.LinkToken == nil || *again.LinkToken == *got.LinkToken {
		t.Errorf("%+v", again)
	}
	by := domain.Origin{Source: "test"}
	if _, err := w.app.UseLink(t.Context(), by, *got.LinkToken, "a long enough password"); err == nil {
		t.Error("the first link works on")
	}
	if _, err := w.app.UseLink(t.Context(), by, *again.LinkToken, "a long enough password"); err != nil {
		t.Error(err)
	}
	w.from(ctx, "console", "POST", members, invitation(erik.Email, "viewer")).is(422, "invalid_request", "email")
	if got.Delivery != internalapi.DeliveryByHand {
		t.Errorf("%+v", got)
	}
	// An operator with a verified address and a password gets no link at another tenant.
	if _, token, err := w.app.ResetOperator(t.Context(), by, erik.Email, false); err != nil {
		t.Error(err)
	} else {
		w.uses(token)
	}
	elsewhere := decode[internalapi.InvitedMember](w.from(w.as(stranger, other, caller.Live), "console", "POST", members, invitation(erik.Email, "viewer")).is(201))
	if elsewhere.LinkToken != nil || elsewhere.Delivery != internalapi.DeliveryNone || elsewhere.Member.ID != erik.ID || elsewhere.Member.State != "active" {
		t.Errorf("%+v", elsewhere)
	}
	path := members + "/" + erik.ID
	if m := decode[internalapi.Member](w.from(ctx, "console", "PATCH", path, `{"role":"admin"}`).is(200)); m.Role != "admin" {
		t.Errorf("%+v", m)
	}
	want := []string{"erik@example.com admin", owner.Email + " owner"}
	if got := w.memberRoles(ctx); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	w.from(ctx, "console", "DELETE", path, "").is(204)
	w.from(ctx, "console", "DELETE", path, "").is(404, "operator_not_found")
	w.from(ctx, "console", "PATCH", path, `{"role":"admin"}`).is(404, "operator_not_found")
	if got := w.memberRoles(w.as(stranger, other, caller.Test)); !slices.Contains(got, "erik@example.com viewer") {
		t.Errorf("%v", got)
	}
	for _, action := range []string{domain.OperatorInvited, domain.OperatorRole, domain.OperatorLeft} {
		all := w.records(tenant, action)
		if r := all[len(all)-1]; r.Actor != owner.ID.String() || r.Object != erik.ID || r.Source != "console:"+caller.FromContext(ctx).RequestID {
			t.Errorf("%s: %+v", action, r)
		}
	}
	for body, field := range map[string]string{
		invitation("x", "staff"): "email", invitation("a@example.com", "boss"): "role", `{"email":"a@example.com","name":"","role":"staff"}`: "name", `{"email":"a@example.com","name":"A"}`: "role",
	} {
		w.from(ctx, "console", "POST", members, body).is(422, "invalid_request", field)
	}
	for _, id := range []string{stranger.ID.String(), domain.NewOperatorID().String(), "x"} { // not members of this tenant
		w.from(ctx, "console", "PATCH", members+"/"+id, `{"role":"staff"}`).is(404, "operator_not_found")
		w.from(ctx, "console", "DELETE", members+"/"+id, "").is(404, "operator_not_found")
	}
	w.from(ctx, "console", "PATCH", members+"/"+owner.ID.String(), `{"role":"boss"}`).is(422, "invalid_request", "role")
}

// mailed serves the calls with mail configured. It returns the texts of the messages sent to an address.
func (w *world) mailed(url string) (to func(address string) []string) {
	w.T.Helper()
	folder := w.T.TempDir()
	if url == "" {
		url = "file://" + folder
	}
	m, err := peers.NewMailer(peers.MailAccess{URL: url, From: "noreply@holdfast.example"})
	if err != nil {
		w.T.Fatal(err)
	}
	w.app.Mailer, w.app.AuthURL = m, "https://auth.test/"
	w.engine = w.serve(w.DB.App)
	return func(address string) (found []string) {
		w.T.Helper()
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			w.T.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				w.T.Fatal(err)
			}
			if strings.Contains(string(text), "To: <"+address+">") {
				found = append(found, string(text))
			}
		}
		return found
	}
}

// TestInvitationsAreMailed checks that, with mail configured, only the owner of an address gets its link. The inviter therefore
// cannot choose the password of a person whom another tenant invites later or invited before.
func TestInvitationsAreMailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := w.mailed("")
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	for n, by := range []context.Context{w.as(owner, tenant, caller.Live), w.as(stranger, other, caller.Live)} {
		a := w.from(by, "console", "POST", members, invitation("erik@example.com", "staff")).is(201)
		got := decode[internalapi.InvitedMember](a)
		if got.LinkToken != nil || got.Delivery != internalapi.DeliveryMailed || got.Member.State != "invited" {
			t.Errorf("%+v", got)
		}
		all := to("erik@example.com")
		if len(all) != n+1 {
			t.Fatalf("%d messages, want %d", len(all), n+1)
		}
	}
	all := to("erik@example.com")
	if !strings.Contains(all[0], domain.InviteSubject(tenant.Name)) || !strings.Contains(all[1], domain.InviteSubject(other.Name)) {
		t.Errorf("%v", all)
	}
	_, rest, _ := strings.Cut(all[1], "https://auth.test/oauth/link/")
	token, _, _ := strings.Cut(rest, "\r\n")
	if _, err := w.app.UseLink(t.Context(), domain.Origin{Source: "test"}, token, "a long enough password"); err != nil {
		t.Errorf("%q: %v", token, err)
	}
	for at, by := range map[*domain.Tenant]domain.Operator{&tenant: owner, &other: stranger} {
		w.from(w.as(by, *at, caller.Live), "console", "POST", members, invitation("erik@example.com", "staff")).is(422, "invalid_request", "email")
	}
}

// TestInvitationWithoutAMailServer checks that a failing mail server is reported. The operator is a member, and the response
// contains no link.
func TestInvitationWithoutAMailServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mailed("smtps://a:secret@127.0.0.1:1")
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	got := decode[internalapi.InvitedMember](w.from(ctx, "console", "POST", members, invitation("erik@example.com", "staff")).is(201))
	if got.LinkToken != nil || got.Delivery != internalapi.DeliveryFailed || !slices.Contains(w.memberRoles(ctx), "erik@example.com staff") {
		t.Errorf("%+v", got)
	}
}

// TestOneTenantSendsFewMessages checks that a tenant that has invited often within a day must wait before it can send more
// messages. Other tenants do not wait.
func TestOneTenantSendsFewMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Now()
	w.app.Now = func() time.Time { return at }
	to := w.mailed("")
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	for range domain.InviteThrottle.Free {
		w.from(ctx, "console", "POST", members, invitation("erik@example.com", "staff")).is(201)
	}
	for _, address := range []string{"erik@example.com", "anna@example.com"} {
		w.from(ctx, "console", "POST", members, invitation(address, "staff")).is(422, "limit_reached", "email")
	}
	w.from(w.as(stranger, other, caller.Live), "console", "POST", members, invitation("anna@example.com", "staff")).is(201)
	if n, roles := len(to("erik@example.com")), w.memberRoles(ctx); n != domain.InviteThrottle.Free || slices.Contains(roles, "anna@example.com staff") {
		t.Errorf("%d messages, %v", n, roles)
	}
	at = at.Add(domain.InviteThrottle.First)
	w.engine = w.serve(w.DB.App)
	w.from(ctx, "console", "POST", members, invitation("anna@example.com", "staff")).is(201)
}

// TestTheLastOwnerStays checks that the last owner cannot be removed, regardless of who requests it. An owner who cannot sign in
// does not count.
func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx, path := w.as(owner, tenant, caller.Live), members+"/"+owner.ID.String()
	second := w.member(tenant, "second@example.com", "owner")
	if _, _, err := w.app.DisableOperator(t.Context(), domain.Origin{}, second.Email); err != nil {
		t.Fatal(err)
	}
	w.from(ctx, "console", "PATCH", path, `{"role":"admin"}`).is(422, "last_owner")
	w.from(ctx, "console", "DELETE", path, "").is(422, "last_owner")
	if got := w.memberRoles(ctx); !slices.Contains(got, owner.Email+" owner") {
		t.Errorf("%v", got)
	}
	if _, err := w.app.EnableOperator(t.Context(), domain.Origin{}, second.Email); err != nil {
		t.Fatal(err)
	}
	w.from(ctx, "console", "PATCH", path, `{"role":"admin"}`).is(200)
	w.from(ctx, "console", "PATCH", path, `{"role":"owner"}`).is(403, "insufficient_permission")
}

// A tenant has at most 1,000 members.
func TestRoomForMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	w.Exec(`with o as (insert into operators (id, email, email_lower, name, created_at, updated_at)
			select gen_random_uuid(), 'm' || n, 'm' || n, '', now(), now() from generate_series(1, 998) n returning id)
		insert into memberships (tenant_id, operator_id, role, created_at) select $1, id, 'viewer', now() from o`, tenant.ID)
	ctx := w.as(owner, tenant, caller.Live)
	w.from(ctx, "console", "POST", members, invitation("last@example.com", "staff")).is(201)
	w.from(ctx, "console", "POST", members, invitation("more@example.com", "staff")).is(422, "limit_reached", "email")
	w.from(ctx, "console", "POST", members, invitation("last@example.com", "viewer")).is(201)
	if got := len(w.memberRoles(ctx)); got != 1000 {
		t.Errorf("%d members", got)
	}
}
