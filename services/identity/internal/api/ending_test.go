package api_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

var by = domain.Origin{Actor: "cli", Source: "test"}

// interrupted makes the revocation of grants fail, like a crash in between, until the returned function is called.
func (w *world) interrupted() (end func()) {
	w.Exec(`alter table oauth_grants add constraint interrupted check (revoked_at is null)`)
	return func() { w.Exec(`alter table oauth_grants drop constraint interrupted`) }
}

func (w *world) revokedGrants() int {
	return w.Count(`select count(*) from oauth_grants where revoked_at is not null`)
}

func (w *world) till(of domain.Tenant) domain.App {
	w.T.Helper()
	till, err := w.app.CreateApp(w.T.Context(), by, of.ID, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://app.example/"}),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return till
}

// TestEndingsAreFinished checks that everything of a disabled or erased operator ends even if the process crashes: grants,
// memberships, personal data, and the record in the audit log. A worker completes it, or the enabling of the operator does so
// before a grant can be used again.
func TestEndingsAreFinished(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"worker", "enabling", "erasure"} {
		w := newWorld(t)
		tenant, _ := w.newTenant()
		dana := w.member(tenant, "dana@example.com", "admin")
		w.granted(tenant, dana, w.till(tenant), caller.Live, false)
		end := w.interrupted()
		verb := w.app.DisableOperator
		if how == "erasure" {
			verb = w.app.EraseOperator
		}
		if _, _, err := verb(t.Context(), by, dana.Email); err == nil {
			t.Fatal("it is not interrupted")
		}
		if err := w.app.FinishEndings(t.Context(), nil); err != nil || w.revokedGrants() != 0 {
			t.Errorf("a worker takes what a process may still do: %v", err)
		}
		w.Exec(`update operator_endings set due_at = now()`) // a minute has passed
		if err := w.app.FinishEndings(t.Context(), nil); err == nil {
			t.Error("what fails is not reported")
		}
		end()
		if how == "enabling" {
			if _, err := w.app.EnableOperator(t.Context(), by, dana.Email); err != nil {
				t.Fatal(err)
			}
		}
		w.Exec(`update operator_endings set due_at = now()`)
		if err := w.app.FinishEndings(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		found := w.records(tenant, domain.OperatorDisabled)
		if w.revokedGrants() != 1 || len(found) != 1 || found[0].Actor != by.Actor || w.Count(`select count(*) from operator_endings`) != 0 {
			t.Errorf("%s: %d grants are revoked, %d records", how, w.revokedGrants(), len(found))
		}
		gone := w.Count(`select count(*) from operators where email = 'dana@example.com'`) == 0
		left := w.Count(`select count(*) from memberships where ended_at is not null`) == 1
		if erased := how == "erasure"; gone != erased || left != erased {
			t.Errorf("%s: erased %v, left %v", how, gone, left)
		}
	}
}

// TestGrantsOfAnEarlierHolderEnd checks that the grants of an earlier holder of an account end when its address is verified, even
// after a crash in between. Grants that the owner gives afterwards remain valid.
func TestGrantsOfAnEarlierHolderEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.newTenant()
	till := w.till(tenant)
	dana := w.member(tenant, "dana@example.com", "admin")
	w.granted(tenant, dana, till, caller.Live, false)
	_, token, err := w.app.ResetOperator(t.Context(), by, dana.Email, false)
	if err != nil {
		t.Fatal(err)
	}
	end := w.interrupted()
	if _, err := w.app.UseLink(t.Context(), domain.Origin{Source: "test"}, token, "a long enough passphrase 42"); err == nil {
		t.Fatal("it is not interrupted")
	}
	end()
	own := w.granted(tenant, dana, till, caller.Test, false)
	w.Exec(`update operator_endings set due_at = now()`)
	if err := w.app.FinishEndings(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(`select count(*) from oauth_grants where revoked_at is null`); n != 1 || w.revokedGrants() != 1 ||
		w.Count(`select count(*) from oauth_grants where revoked_at is null and id = $1`, own.ID) != 1 {
		t.Errorf("%d grants are left", n)
	}
}
