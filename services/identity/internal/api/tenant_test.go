package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

const settings = "/internal/v1/tenant"

// TestSettingsForTheConsole checks that the console writes each setting of its own tenant, clears it with null, and does not change
// absent ones.
func TestSettingsForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, _ := w.newTenant()
	ctx := w.as(owner, tenant, caller.Test)
	const sent = `{"name":"New","timezone":"Europe/Paris","currency":"JPY","country":"FR","auto_confirm":true,"hold_ttl_minutes":30,"min_notice_minutes":60,
		"max_advance_days":365,"confirm_on_deposit":false,"refund_rules":[{"hours_before":168,"percent":100},{"hours_before":0,"percent":33}],"auto_refund":true,
		"refund_late_payments":true,"invoice_prefix":"R/","invoice_year":true,"legal_name":"New SARL","address":"1, rue Neuve\n75001 Paris","tax_id":"FR 1",
		"tax_behavior":"inclusive","default_taxes":[{"name":"TVA","rate":"20"}],"locale":"fr-CA",
		"bank_account_holder":"New SARL","bank_account_number":"FR1420041010050500013M02606","bank_code":"PSSTFRPPPAR","bank_name":"Banque"}`
	a := w.from(ctx, "console", "PATCH", settings, sent).is(200)
	var flat map[string]any
	if err := json.Unmarshal(a.Body, &flat); err != nil {
		t.Fatal(err)
	}
	policy, ok := flat["booking_policy"].(map[string]any)
	if !ok {
		t.Fatalf("%s", a.Body)
	}
	for name, value := range policy {
		flat[name] = value
	}
	delete(flat, "booking_policy")
	response, err := json.Marshal(flat)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Written[internalapi.TenantPatch](t, sent, response)
	records := w.records(tenant, domain.TenantUpdated)
	if len(records) != 1 || records[0].Actor != owner.ID.String() || records[0].Source != "console:"+caller.FromContext(ctx).RequestID {
		t.Errorf("%+v", records)
	}

	read := func(id string) internalapi.Tenant {
		t.Helper()
		return decode[internalapi.Tenant](w.from(ctx, "console", "GET", "/internal/v1/tenants/"+id, "").is(200))
	}
	if got := read(tenant.ID.String()); got.Name != "New" || got.PolicyVersion != 2 || *got.BookingPolicy.HoldTTLMinutes != 30 {
		t.Errorf("%+v", got)
	}
	for range 2 { // the second changes nothing
		w.from(ctx, "console", "PATCH", settings, `{"country":null,"hold_ttl_minutes":null,"refund_rules":null,"legal_name":""}`).is(200)
	}
	got := read(tenant.ID.String())
	if got.Country != nil || got.BookingPolicy.HoldTTLMinutes != nil || got.BookingPolicy.RefundRules != nil || got.LegalName != "" || got.PolicyVersion != 3 ||
		got.Name != "New" || *got.BookingPolicy.MinNoticeMinutes != 60 || got.TaxID != "FR 1" {
		t.Errorf("%+v", got)
	}
	w.from(ctx, "console", "PATCH", settings, `{"refund_rules":[]}`).is(200)
	if got := read(tenant.ID.String()); got.BookingPolicy.RefundRules == nil || len(got.BookingPolicy.RefundRules) != 0 {
		t.Errorf("%+v", got.BookingPolicy)
	}
	if got := read(other.ID.String()); got.PolicyVersion != 1 || got.Name == "New" {
		t.Errorf("another tenant: %+v", got)
	}
}

// TestWrongSettings checks that each invalid setting is named.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	for body, field := range map[string]string{
		`{"name":""}`: "name", `{"timezone":"Mars"}`: "timezone", `{"currency":"EURO"}`: "currency", `{"country":"XX"}`: "country", `{"hold_ttl_minutes":0}`: "hold_ttl_minutes",
		`{"min_notice_minutes":-1}`: "min_notice_minutes", `{"max_advance_days":36501}`: "max_advance_days", `{"refund_rules":[{"hours_before":0,"percent":101}]}`: "refund_rules.0.percent", `{"refund_rules":[{"hours_before":24}]}`: "refund_rules.0.percent",
		`{"invoice_prefix":"RE 1"}`: "invoice_prefix", `{"legal_name":"` + strings.Repeat("x", 201) + `"}`: "legal_name", `{"address":"` + strings.Repeat("x", 501) + `"}`: "address",
		`{"tax_id":"` + strings.Repeat("x", 51) + `"}`: "tax_id", `{"tax_behavior":"net"}`: "tax_behavior", `{"default_taxes":null}`: "default_taxes", `{"default_taxes":[{"name":"VAT","rate":"1000"}]}`: "default_taxes.0.rate",
		`{"default_taxes":[{"name":"VAT","rate":"1"},{"name":"VAT","rate":"1.0"}]}`: "default_taxes.1.name", `{"auto_confirm":"yes"}`: "auto_confirm", `{"locale":"zz-nothing-known"}`: "locale",
		`{"bank_account_holder":"a\nb"}`: "bank_account_holder", `{"bank_account_number":"DE89370400440532013001"}`: "bank_account_number", `{"bank_code":"X"}`: "bank_code",
		`{"bank_name":"` + strings.Repeat("x", 101) + `"}`: "bank_name", `{"slug":"new"}`: "slug", `{"name":"` + strings.Repeat("x", 70_000) + `"}`: "name",
	} {
		w.from(ctx, "console", "PATCH", settings, body, strict).is(422, "invalid_request", field)
	}
	a := w.from(ctx, "console", "PATCH", settings, `{"name":"","country":"XX","tax_id":"1"}`).is(422, "invalid_request", "name")
	if !strings.Contains(string(a.Body), `"country"`) || strings.Contains(string(a.Body), `"tax_id"`) {
		t.Errorf("%s", a.Body)
	}
	if n := w.Count(`select count(*) from tenants where version > 1`); n != 0 {
		t.Error("a wrong change was written")
	}
}
