package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// draftOf returns the body that stores a draft.
func draftOf(t *testing.T, proof, name, text string) string {
	t.Helper()
	raw, err := json.Marshal(internalapi.NewDraft{Proof: proof, Page: "/admin/a/test/customers/new", Values: internalapi.FormValues{name: {text}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestDrafts checks that form input is stored encrypted for an hour, with the proof of the operator's pages, and is shown only to
// that operator.
func TestDrafts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tenant, _ := w.keyed("test", "all")
	dana, erik := w.member(tenant, "dana@example.com", "staff"), w.member(tenant, "erik@example.com", "owner")
	noTenant := in(t.Context(), func(c *caller.Caller) { *c = caller.Service("console", ids.Tenant{}, "") })
	const drafts, key = "/internal/v1/drafts/", "abcdefghijklmnopqrst-1"
	save := func(key, body string) response { return w.from(noTenant, "console", "PUT", drafts+key, body) }
	read := func(key string, id domain.OperatorID) response {
		return w.from(noTenant, "console", "GET", drafts+key+"?operator="+id.String(), "")
	}
	now := time.Now()
	hash := w.signedIn(&dana.ID, now, now, now.Add(time.Hour))
	proof := decode[internalapi.Session](w.from(noTenant, "console", "POST", "/internal/v1/sessions/lookup", `{"hash":"`+hash+`"}`).is(200)).FormProof
	if proof == "" || len(proof) > 300 {
		t.Fatalf("the proof is %q", proof)
	}

	save(key, draftOf(t, proof, "notes", "Grace <b>")).is(204)
	got := decode[internalapi.Draft](read(key, dana.ID).is(200))
	if got.Page != "/admin/a/test/customers/new" || len(got.Values["notes"]) != 1 || got.Values["notes"][0] != "Grace <b>" {
		t.Errorf("%+v", got)
	}
	read(key, erik.ID).is(404, "not_found")
	read(key+"x", dana.ID).is(404, "not_found")
	w.from(noTenant, "console", "GET", drafts+key+"?operator=x", "").is(404, "not_found")
	if n := w.Count(`select count(*) from form_drafts where position('Grace'::bytea in sealed) > 0`); n != 0 {
		t.Error("a draft is not sealed")
	}

	// A draft is not stored without a proof, or if its proof has expired or was changed.
	over, err := w.app.Box.Seal(domain.FormProof(dana.ID, now.Add(-domain.ProofLifetime)), domain.ProofBinding())
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]string{"none": "", "no base64": "!", "no seal": "AAAA", "changed": proof[:len(proof)-10] + strings.Repeat("A", 10), "over": base64.RawURLEncoding.EncodeToString(over), "of another use": hash} {
		if a := save("bbbbbbbbbbbbbbbbbbbb", draftOf(t, one, "notes", "x")); a.Status != 404 {
			t.Errorf("%s: %d", name, a.Status)
		}
	}
	if n := w.Count(`select count(*) from form_drafts`); n != 1 {
		t.Errorf("%d drafts", n)
	}
	save("short", draftOf(t, proof, "notes", "x")).is(404)
	save(key, `{"proof":"`+proof+`"}`).is(422, "invalid_request", "page")
	save(key, `{`).is(400, "malformed_json")
	for _, peer := range []string{"gateway", "bookings"} {
		w.from(noTenant, peer, "PUT", drafts+key, draftOf(t, proof, "notes", "x")).is(401, "invalid_credential")
	}

	// The limits of one draft, and of all drafts of an operator.
	save(key, draftOf(t, proof, "notes", strings.Repeat("x", domain.MaxDraft-200))).is(204)
	save(key, draftOf(t, proof, "notes", strings.Repeat("x", domain.MaxDraft))).is(413, "request_too_large")
	save(key, draftOf(t, proof, "notes", strings.Repeat("x", 700_000))).is(413, "request_too_large")
	for i := range domain.MaxDrafts {
		save(fmt.Sprintf("cccccccccccccccccccc-%d", i), draftOf(t, proof, "notes", "x")).is(204)
	}
	if n := w.Count(`select count(*) from form_drafts where operator_id = $1`, dana.ID); n != domain.MaxDrafts {
		t.Errorf("%d drafts", n)
	}
	read(key, dana.ID).is(404)

	// After an hour the draft is not shown, and the sweep deletes it (TestSweep). No draft of an erased operator remains.
	last := fmt.Sprintf("cccccccccccccccccccc-%d", domain.MaxDrafts-1)
	w.Exec(`update form_drafts set created_at = $1 where key = $2`, now.Add(-domain.DraftLifetime), last)
	read(last, dana.ID).is(404)
	if _, _, err := w.app.EraseOperator(t.Context(), domain.Origin{Actor: "cli", Source: "test"}, dana.Email); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(`select count(*) from form_drafts`); n != 0 {
		t.Errorf("%d drafts of an erased operator", n)
	}
}
