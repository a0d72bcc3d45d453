package api_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

const auditLog = "/internal/v1/audit"

// TestAuditForTheConsole checks that the console pages through the log of one tenant, of one mode or both, by filters.
func TestAuditForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	live, test := w.as(owner, tenant, caller.Live), w.as(owner, tenant, caller.Test)
	var keys []string
	for i := range 4 {
		ctx := []context.Context{live, test}[i%2]
		keys = append(keys, decode[internalapi.Key](w.from(ctx, "console", "POST", apiKeys, `{"name":"Till","scopes":["read:units"]}`).is(201)).ID)
	}
	get := func(ctx context.Context, query string) internalapi.AuditPage {
		t.Helper()
		return decode[internalapi.AuditPage](w.from(ctx, "console", "GET", auditLog+query, "").is(200))
	}
	all := get(live, "").Data
	for i, r := range all {
		if want := int64(len(all) - i); r.Sequence != want || r.Source == nil {
			t.Errorf("%+v, want number %d", r, want)
		}
	}
	if last := all[0]; last.Object != keys[3] || last.Action != domain.KeyCreated || last.Actor != owner.ID.String() || last.Mode != "test" || time.Since(last.At) > time.Minute ||
		last.Before != nil || last.After == nil || !strings.Contains(string(*last.After), keys[3]) || !strings.HasPrefix(*last.Source, "console:req_") {
		t.Errorf("%+v", last)
	}
	if got := get(test, "").Data; len(got) != len(all) {
		t.Errorf("%d records in test mode", len(got))
	}
	from, to := url.QueryEscape(all[3].At.Format(time.RFC3339Nano)), url.QueryEscape(all[0].At.Format(time.RFC3339Nano))
	for query, want := range map[string]int{
		"?object=" + keys[1]:                         1,
		"?cursor=":                                   len(all),
		"?actor=" + owner.ID.String():                4,
		"?actor=" + owner.ID.String() + "&mode=test": 2,
		"?actor=" + owner.ID.String() + "&mode=live": 2,
		"?action=key.create":                         5,
		"?action=key.create&actor=cli":               1,
		"?action=key":                                0,
		"?from=" + from:                              4,
		"?from=" + from + "&to=" + to:                3,
		"?object=" + keys[0] + "&mode=test":          0,
		"?object=" + other.ID.String():               0,
		"?actor=" + url.QueryEscape("' or true --"):  0,
		"?limit=2": 2,
		fmt.Sprintf("?cursor=%d", all[1].Sequence):                  len(all) - 2,
		fmt.Sprintf("?cursor=%d&limit=1", all[len(all)-2].Sequence): 1,
	} {
		if got := get(live, query).Data; len(got) != want {
			t.Errorf("%s: %d records, want %d", query, len(got), want)
		}
	}
	for _, r := range get(w.as(stranger, other, caller.Live), "").Data {
		if r.Actor == owner.ID.String() || r.Object == tenant.ID.String() {
			t.Errorf("another tenant reads %+v", r)
		}
	}
	var walked []int64
	for query := "?limit=2"; query != ""; {
		page := get(live, query)
		for _, r := range page.Data {
			walked = append(walked, r.Sequence)
		}
		if query = ""; page.NextCursor != nil {
			query = fmt.Sprintf("?limit=2&cursor=%s", *page.NextCursor)
		}
	}
	if len(walked) != len(all) || walked[len(walked)-1] != 1 {
		t.Errorf("%v", walked)
	}
	for query, field := range map[string]string{
		"from=x": "from", "to=2026-01-01": "to", "cursor=0": "cursor", "cursor=x": "cursor", "limit=0": "limit", "limit=101": "limit", "mode=prod": "mode",
		"object=" + strings.Repeat("x", 201): "object",
	} {
		w.from(live, "console", "GET", auditLog+"?"+query, "").is(422, "invalid_request", field)
	}
}

// TestTimelineOfAnObject checks that every member can read the changes of one object, and that only members who may read the log
// see their source.
func TestTimelineOfAnObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	viewer := w.member(tenant, "viewer@example.com", "viewer")
	key := decode[internalapi.Key](w.from(w.as(owner, tenant, caller.Live), "console", "POST", apiKeys, `{"name":"Till","scopes":["read:units"]}`).is(201))
	for _, o := range []domain.Operator{owner, viewer} {
		shown := o.ID == owner.ID
		page := decode[internalapi.AuditPage](w.from(w.as(o, tenant, caller.Test), "console", "GET", auditLog+"?object="+key.ID, "").is(200))
		if len(page.Data) != 1 || (page.Data[0].Source != nil) != shown {
			t.Errorf("%s: %+v", o.Email, page.Data)
		}
	}
}

// TestVerifyForTheConsole checks that the console verifies the chain of its own tenant and shows where it is broken. A log that
// cannot be read in time returns 503.
func TestVerifyForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	verify := func(o domain.Operator, at domain.Tenant) internalapi.AuditVerdict {
		t.Helper()
		return decode[internalapi.AuditVerdict](w.from(w.as(o, at, caller.Test), "console", "POST", auditLog+"/verify", "").is(200))
	}
	if v := verify(owner, tenant); v.Broken != nil || v.Records != 3 || v.Head.Sequence != 3 || len(v.Head.Hash) != 64 {
		t.Errorf("%+v", v)
	}
	w.Exec(`alter table audit_log disable trigger append_only`)
	w.Exec(`update audit_log set actor = 'somebody else' where tenant_id = $1 and seq = 2`, tenant.ID)
	if v := verify(owner, tenant); v.Broken == nil || *v.Broken != "record 2 was altered" || v.Records != 1 {
		t.Errorf("%+v", v)
	}
	if v := verify(stranger, other); v.Broken != nil {
		t.Errorf("%+v", v)
	}
}
