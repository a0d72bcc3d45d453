package api_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// victim is an address that is invited by a person other than its owner.
const victim = "victim@example.com"

// invites makes an operator invite an address, and returns the response.
func (w *world) invites(o domain.Operator, at domain.Tenant, email, role string) internalapi.InvitedMember {
	w.T.Helper()
	return decode[internalapi.InvitedMember](w.from(w.as(o, at, caller.Live), "console", "POST", members, invitation(email, role)).is(201))
}

// commands makes the command line invite an address, and returns the token of the link.
func (w *world) commands(at domain.Tenant, email, role string) string {
	w.T.Helper()
	_, token, err := w.app.InviteOperator(w.T.Context(), domain.Origin{Actor: "cli", Source: "test"}, app.Invitation{Tenant: at.ID, Email: email, Name: "Erik", Role: role})
	if err != nil {
		w.T.Fatal(err)
	}
	return token
}

// tenantsOf returns the tenants that an operator is currently a member of.
func (w *world) tenantsOf(id domain.OperatorID) (found []string) {
	w.T.Helper()
	all, err := w.app.Memberships(w.T.Context(), id)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, m := range all {
		found = append(found, m.Slug)
	}
	return found
}

// signsIn reports whether a password belongs to an address.
func (w *world) signsIn(email, password string) bool {
	w.T.Helper()
	o, err := w.app.SignIn(w.T.Context(), app.SignIn{Email: email, Password: password, Browser: "b", Address: "198.51.100.7", By: domain.Origin{Source: "test"}})
	return err == nil && o.ID != (domain.OperatorID{})
}

// last returns the token of the last link that was mailed to an address.
func last(t *testing.T, texts []string) string {
	t.Helper()
	if len(texts) == 0 {
		t.Fatal("nothing was mailed")
	}
	_, rest, _ := strings.Cut(texts[len(texts)-1], "/oauth/link/")
	token, _, _ := strings.Cut(rest, "\r\n")
	return token
}

// TestAnUnprovenAddressBelongsToOneTenant checks that an admin who invites a person's address and uses the link cannot get into
// another tenant, regardless of the case or Unicode form of the address. Without mail, another tenant cannot invite the address.
// Leaving the tenant does not help either, because the account is reset.
func TestAnUnprovenAddressBelongsToOneTenant(t *testing.T) {
	t.Parallel()
	for _, again := range []string{victim, "VICTIM@Example.com", "ｖictim@example.com"} {
		w := newWorld(t)
		attacker, evil := w.newTenant()
		tenant, owner := w.newTenant()
		first := w.invites(evil, attacker, victim, "staff")
		w.uses(*first.LinkToken)
		id, err := domain.ParseOperatorID(first.Member.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.from(w.as(owner, tenant, caller.Live), "console", "POST", members, invitation(again, "owner")).is(422, "invalid_request", "email")
		if got := w.tenantsOf(id); len(got) != 1 || got[0] != attacker.Slug {
			t.Errorf("%s: %v", again, got)
		}
		w.from(w.as(evil, attacker, caller.Live), "console", "DELETE", members+"/"+first.Member.ID, "").is(204)
		second := w.invites(owner, tenant, again, "owner")
		if second.LinkToken == nil || second.Member.ID != first.Member.ID || second.Member.State != "invited" {
			t.Fatalf("%s: %+v", again, second)
		}
		if w.signsIn(victim, "a long enough password") {
			t.Errorf("%s: the password of the attacker opens the other tenant", again)
		}
		w.from(w.as(evil, attacker, caller.Live), "console", "POST", members, invitation(victim, "staff")).is(422, "invalid_request", "email")
		w.uses(*second.LinkToken)
		if got := w.tenantsOf(id); len(got) != 1 || got[0] != tenant.Slug {
			t.Errorf("%s: %v", again, got)
		}
	}
}

// TestHandedLinksEnd checks that links a tenant handed over before it removed a person, or before the address was verified, end.
func TestHandedLinksEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attacker, evil := w.newTenant()
	tenant, owner := w.newTenant()
	stale := w.invites(evil, attacker, victim, "staff")
	w.from(w.as(evil, attacker, caller.Live), "console", "DELETE", members+"/"+stale.Member.ID, "").is(204)
	w.invites(owner, tenant, victim, "owner")
	if _, err := w.app.LinkOperator(t.Context(), *stale.LinkToken); err == nil {
		t.Error("the link of a person who was removed works on")
	}
	const other = "other@example.com"
	handed := w.invites(evil, attacker, other, "staff")
	w.uses(w.commands(tenant, other, "owner"))
	if _, err := w.app.LinkOperator(t.Context(), *handed.LinkToken); err == nil {
		t.Error("a link that was handed over works although the address is proven")
	}
}

// TestAnInvitationWaitsForTheMailedLink checks that, with mail configured or from the command line, the invitation of another
// tenant is pending until its link is used. Using the link sets the password, ends all sessions and grants, removes the second
// factor, and begins every pending membership.
func TestAnInvitationWaitsForTheMailedLink(t *testing.T) {
	t.Parallel()
	for name, byMail := range map[string]bool{"mail": true, "command line": false} {
		w := newWorld(t)
		attacker, evil := w.newTenant()
		tenant, owner := w.newTenant()
		third, thirdOwner := w.newTenant()
		first := w.invites(evil, attacker, victim, "staff")
		o := w.uses(*first.LinkToken)
		w.Exec(`update operators set totp_secret = 'x' where id = $1`, o.ID)
		w.Exec(`insert into recovery_codes (operator_id, hash) values ($1, 'x')`, o.ID)
		w.Exec(`insert into known_browsers (operator_id, hash, used_at) values ($1, 'x', now())`, o.ID)
		hash := w.signedIn(&o.ID, w.app.Now(), w.app.Now(), w.app.Now().Add(domain.SessionIdle))
		var token string
		if byMail {
			to := w.mailed("")
			got := w.invites(owner, tenant, victim, "owner")
			if got.LinkToken != nil || got.Delivery != internalapi.DeliveryMailed || got.Member.State != "invited" || got.Member.SecondFactor {
				t.Errorf("%s: %+v", name, got)
			}
			w.invites(owner, tenant, victim, "owner")
			w.invites(thirdOwner, third, victim, "viewer")
			if n := len(to(victim)); n != 3 {
				t.Fatalf("%s: %d messages", name, n)
			}
			token = last(t, to(victim)[:2])
		} else {
			token = w.commands(tenant, victim, "owner")
			w.commands(third, victim, "viewer")
		}
		if got := w.tenantsOf(o.ID); len(got) != 1 || got[0] != attacker.Slug {
			t.Errorf("%s: a member of %v before the link is used", name, got)
		}
		w.from(w.as(o, tenant, caller.Live), "console", "GET", members, "").is(403, "insufficient_permission")
		w.from(w.as(owner, tenant, caller.Live), "console", "PATCH", members+"/"+o.ID.String(), `{"role":"admin"}`).is(200)
		if got := w.tenantsOf(o.ID); len(got) != 1 {
			t.Errorf("%s: a member of %v after a change of the role", name, got)
		}
		if _, err := w.app.UseLink(t.Context(), domain.Origin{Source: "test"}, token, "another long password"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := w.tenantsOf(o.ID); len(got) != 3 {
			t.Errorf("%s: a member of %v", name, got)
		}
		if w.signsIn(victim, "a long enough password") || !w.signsIn(victim, "another long password") {
			t.Errorf("%s: the password of the one before works", name)
		}
		w.from(w.service("console", ids.Tenant{}, ""), "console", "POST", "/internal/v1/sessions/lookup", `{"hash":"`+hash+`"}`).is(404)
		if n := w.Count(`select (select count(*) from recovery_codes where operator_id = $1) + (select count(*) from known_browsers where operator_id = $1)
			+ (select count(*) from operators where id = $1 and totp_secret is not null) + (select count(*) from operator_links where operator_id = $1)`, o.ID); n != 0 {
			t.Errorf("%s: %d remains of the one before", name, n)
		}
		// An operator with a verified address becomes a member immediately.
		fourth, fourthOwner := w.newTenant()
		if got := w.invites(fourthOwner, fourth, victim, "staff"); got.Member.State != "active" || got.Delivery != internalapi.DeliveryNone {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAnInvitationThatWaitsEnds checks that a pending invitation is removed in the same way as a membership, by the tenant and
// with the operator.
func TestAnInvitationThatWaitsEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attacker, evil := w.newTenant()
	tenant, owner := w.newTenant()
	o := w.uses(*w.invites(evil, attacker, victim, "staff").LinkToken)
	token := w.commands(tenant, victim, "owner")
	w.from(w.as(owner, tenant, caller.Live), "console", "DELETE", members+"/"+o.ID.String(), "").is(204)
	if _, err := w.app.LinkOperator(t.Context(), token); err == nil {
		t.Error("the link works on")
	}
	if got := w.memberRoles(w.as(owner, tenant, caller.Live)); len(got) != 1 {
		t.Errorf("%v", got)
	}
	w.commands(tenant, victim, "owner")
	if _, _, err := w.app.EraseOperator(t.Context(), domain.Origin{Source: "test"}, victim); err != nil {
		t.Fatal(err)
	}
	if got := w.memberRoles(w.as(owner, tenant, caller.Live)); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestTwoTenantsInviteAtOnce checks that if two tenants invite the same new address at the same time, exactly one succeeds.
func TestTwoTenantsInviteAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type side struct {
		ctx    context.Context
		status int
	}
	for range 5 {
		sides := make([]side, 2)
		email := "m" + domain.NewOperatorID().String()[3:] + "@example.com"
		var all sync.WaitGroup
		for i := range sides {
			tenant, owner := w.newTenant()
			sides[i].ctx = w.as(owner, tenant, caller.Live)
		}
		for i := range sides {
			all.Go(func() {
				sides[i].status = w.from(sides[i].ctx, "console", "POST", members, invitation(email, "owner")).Status
			})
		}
		all.Wait()
		if sides[0].status+sides[1].status != 201+422 {
			t.Errorf("%+v", sides)
		}
	}
}

// TestGrantsEndWithTheMembership checks that grants of a member who leaves are not restored with a later membership.
func TestGrantsEndWithTheMembership(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	o := w.member(tenant, "erik@example.com", "admin")
	till, err := w.app.CreateApp(t.Context(), domain.Origin{Source: "test"}, tenant.ID, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://app.example/"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		w.granted(tenant, o, till, mode, false)
	}
	w.from(w.as(owner, tenant, caller.Live), "console", "DELETE", members+"/"+o.ID.String(), "").is(204)
	w.member(tenant, o.Email, "admin")
	if n := w.Count(`select count(*) from oauth_grants where operator_id = $1 and revoked_at is null`, o.ID); n != 0 {
		t.Errorf("%d grants work again", n)
	}
}
