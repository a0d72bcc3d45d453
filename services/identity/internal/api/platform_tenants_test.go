package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/proto/platformapi"
)

// tenantWith is a tenant with a slug, and more properties.
func tenantWith(slug, more string) string {
	return strings.Replace(newTenant, `"slug":"harbor"`, `"slug":"`+slug+`",`+more, 1)
}

// A tenant has an external id, which no other tenant can have, and metadata, which is returned as it was sent. Neither value is in the
// audit log, which the operators of the tenant can read.
func TestPlatformExternalIDs(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	first := read[platformapi.Tenant](p.call("POST", "/tenants", tenantWith("one", `"external_id":"crm-4711","metadata":{"plan":"gölden","a":"\u00e9"}`)).is(201))
	if first.ExternalID.MustGet() != "crm-4711" || string(first.Metadata) != `{"plan":"gölden","a":"é"}` {
		t.Errorf("created %+v %s", first, first.Metadata)
	}
	p.call("POST", "/tenants", tenantWith("two", `"external_id":"crm-4711"`)).is(409, "external_id_taken")
	second := read[platformapi.Tenant](p.call("POST", "/tenants", tenantWith("two", `"external_id":"CRM-4711","metadata":["b","a"]`)).is(201))
	third := read[platformapi.Tenant](p.call("POST", "/tenants", tenantWith("three", `"external_id":null,"metadata":[]`)).is(201))
	if string(second.Metadata) != `["b","a"]` || string(third.Metadata) != `{}` || !third.ExternalID.IsNull() {
		t.Errorf("second %s, third %s", second.Metadata, third.Metadata)
	}
	taken := p.call("PATCH", "/tenants/"+third.ID, `{"external_id":"crm-4711"}`).is(409, "external_id_taken")
	if !strings.Contains(taken.Body.String(), `external_id \"crm-4711\"`) {
		t.Errorf("the response does not name the value: %s", taken.Body)
	}
	same := p.call("PATCH", "/tenants/"+first.ID, `{"external_id":"crm-4711","metadata":{"plan":"gölden","a":"é"}}`).is(200)
	if same.Header().Get("ETag") != `"1"` {
		t.Errorf("a change without effect: %s", same.Body)
	}
	if got := read[platformapi.Tenant](p.call("PATCH", "/tenants/"+first.ID, `{"external_id":null,"metadata":null}`).is(200)); !got.ExternalID.IsNull() || string(got.Metadata) != `{}` || got.Version != 2 {
		t.Errorf("cleared %+v", got)
	}
	p.call("PATCH", "/tenants/"+third.ID, `{"external_id":"crm-4711"}`).is(200)
	var audited string
	if err := p.Owner().QueryRow(t.Context(), `select string_agg(coalesce(before::text, '') || after::text, ' ') from audit_log`).Scan(&audited); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(audited), "crm-4711") || strings.Contains(audited, "lden") || !strings.Contains(audited, `"changed_platform_fields": ["external_id", "metadata"]`) {
		t.Errorf("audited %s", audited)
	}
}

// The bounds of external ids and metadata are those of the contract.
func TestPlatformTenantBounds(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	pairs := func(n, value int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("%040d", i)] = strings.Repeat("v", value)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	largest := tenantWith("largest", `"external_id":"`+strings.Repeat("ü", 200)+`","metadata":`+pairs(50, 500))
	if got := read[platformapi.Tenant](p.call("POST", "/tenants", largest).is(201)); len(got.Metadata) != len(pairs(50, 500)) {
		t.Errorf("the largest metadata came back with %d bytes", len(got.Metadata))
	}
	for more, field := range map[string]string{
		`"external_id":""`: "external_id", `"external_id":7`: "external_id", `"external_id":"a\nb"`: "external_id",
		`"external_id":"` + strings.Repeat("x", 201) + `"`: "external_id",
		`"metadata":` + pairs(51, 1):                       "metadata", `"metadata":"text"`: "metadata",
		`"metadata":{"k":1}`: "metadata.k", `"metadata":{"k":"` + strings.Repeat("v", 501) + `"}`: "metadata.k",
	} {
		p.call("POST", "/tenants", tenantWith("wrong", more)).is(422, "invalid_request", field)
	}
}

// Of several tenants with one external id at the same time, one is created, and the others are rejected.
func TestOneTenantHasAnExternalID(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	const writers = 8
	var all sync.WaitGroup
	statuses := make([]int, writers)
	for i := range writers {
		all.Go(func() {
			statuses[i] = p.call("POST", "/tenants", tenantWith(fmt.Sprintf("t%d", i), `"external_id":"crm-1"`)).Code
		})
	}
	all.Wait()
	slices.Sort(statuses)
	if statuses[0] != http.StatusCreated || statuses[1] != http.StatusConflict || statuses[writers-1] != http.StatusConflict {
		t.Errorf("statuses %v, want one 201 and otherwise 409", statuses)
	}
	if list := read[platformapi.TenantList](p.call("GET", "/tenants?external_id=crm-1", "").is(200)); len(list.Data) != 1 {
		t.Errorf("%d tenants have the external id", len(list.Data))
	}
}

// slugs returns the slugs of all pages of a list.
func (p *platform) slugs(query string) (list []string) {
	p.t.Helper()
	cursor := ""
	for {
		page := read[platformapi.TenantList](p.call("GET", "/tenants?"+query+cursor, "").is(200))
		for _, one := range page.Data {
			list = append(list, one.Slug)
		}
		if !page.HasMore {
			return list
		}
		cursor = "&cursor=" + page.NextCursor.MustGet()
	}
}

// Tenants are found by the words of their slug, name and external id, and by their whole external id.
func TestPlatformFindsTenants(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for slug, more := range map[string]string{
		"north-pier": `"external_id":"crm_0815/eu","name":"Müller & Søn Bootsverleih"`, "south-pier": `"external_id":"crm_0816/eu","name":"O’Brien’s Straße"`,
	} {
		p.call("POST", "/tenants", strings.Replace(tenantWith(slug, more), `"name":"Harbor Tours",`, ``, 1)).is(201)
	}
	for query, want := range map[string]string{
		"q=pier": "north-pier south-pier", "q=muller": "north-pier", "q=M%C3%9CLL+boots": "north-pier", "q=muller+south": "", "q=STRASSE": "south-pier", "q=o'brien": "south-pier",
		"q=crm_0815": "north-pier", "q=north-pier": "north-pier", "q=ier": "", "q=---": "", "q=": "north-pier south-pier",
		"q=%27+%26+%21+%28pier%3A%2A+%5C": "north-pier south-pier", "external_id=crm_0816/eu": "south-pier", "external_id=CRM_0816/eu": "", "external_id=crm_0815/eu&q=south": "",
		"q=pier&limit=1": "north-pier south-pier", "q=pier&slug=south-pier": "south-pier", "q=pier&status=suspended": "",
	} {
		if got := p.slugs(query); strings.Join(slices.Sorted(slices.Values(got)), " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	p.call("GET", "/tenants?q="+strings.Repeat("x", 201), "").is(422, "invalid_request", "q")
	p.call("GET", "/tenants?updated_after=yesterday", "").is(422, "invalid_request", "updated_after")
	p.call("GET", "/tenants?sort=name", "").is(422, "invalid_request", "sort")
}

// In the order of the changes, a page continues after the last one, and updated_after is inclusive. A cursor is refused for the other
// order.
func TestPlatformTenantsByUpdate(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	ids := map[string]string{}
	for _, slug := range []string{"a", "b", "c"} {
		ids[slug] = read[platformapi.Tenant](p.call("POST", "/tenants", tenantWith(slug, `"external_id":null`)).is(201)).ID
	}
	changed := read[platformapi.Tenant](p.call("PATCH", "/tenants/"+ids["a"], `{"metadata":{"k":"v"}}`).is(200))
	if got := p.slugs("sort=updated_at&limit=1"); strings.Join(got, "") != "bca" {
		t.Errorf("by update %v", got)
	}
	if got := p.slugs("sort=created_at&limit=1"); strings.Join(got, "") != "abc" {
		t.Errorf("by creation %v", got)
	}
	after := "updated_after=" + changed.UpdatedAt.Format(time.RFC3339Nano)
	if got := p.slugs("sort=updated_at&" + after); strings.Join(got, "") != "a" {
		t.Errorf("after the last one %v", got)
	}
	if got := p.slugs(after); strings.Join(got, "") != "a" {
		t.Errorf("by creation, after the last change %v", got)
	}
	updated := read[platformapi.TenantList](p.call("GET", "/tenants?sort=updated_at&limit=1", "").is(200)).NextCursor.MustGet()
	created := read[platformapi.TenantList](p.call("GET", "/tenants?limit=1", "").is(200)).NextCursor.MustGet()
	p.call("GET", "/tenants?cursor="+updated, "").is(400, "invalid_cursor")
	for _, wrong := range []string{created, "." + created, "-1." + created, "9223372036854775807." + created, "1.key_01k00000000000000000000001"} {
		p.call("GET", "/tenants?sort=updated_at&cursor="+wrong, "").is(400, "invalid_cursor")
	}
}

// A client that syncs by updated_at receives the last state of each tenant, although some writes end in another order than they began.
func TestTenantSyncMissesNoChange(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.call("POST", "/tenants", tenantWith("early", `"external_id":"early"`)).is(201)
	late := read[platformapi.Tenant](p.call("POST", "/tenants", tenantWith("late", `"external_id":"late"`)).is(201))
	tx, err := p.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update tenants set name = 'Slow', version = version + 1, updated_at = clock_timestamp() where slug = 'early'`); err != nil {
		t.Fatal(err)
	}
	p.call("PATCH", "/tenants/"+late.ID, `{"name":"Quick"}`).is(200)
	if got := p.slugs("sort=updated_at"); slices.Contains(got, "late") {
		t.Errorf("listed %v: a client would continue after a change that has not ended", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.slugs("sort=updated_at"); strings.Join(got, " ") != "early late" {
		t.Errorf("listed %v", got)
	}

	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := range 10 {
				p.call("POST", "/tenants", tenantWith(fmt.Sprintf("w%d-%d", i, j), `"metadata":{}`))
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	seen, from, ended := map[string]bool{}, "2020-01-01T00:00:00Z", false
	for !ended {
		select {
		case <-done:
			ended = true // one more round
		default:
		}
		for _, one := range read[platformapi.TenantList](p.call("GET", "/tenants?limit=100&sort=updated_at&updated_after="+from, "").is(200)).Data {
			seen[one.Slug], from = true, one.UpdatedAt.Format(time.RFC3339Nano)
		}
	}
	if len(seen) != 42 {
		t.Errorf("a client that syncs has seen %d tenants, want 42", len(seen))
	}
}
