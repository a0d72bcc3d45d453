package forms_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/forms"
	"holdfast.dev/proto"
)

// TestEachTextIsOneLine checks all texts that a client can send. The name of a text without a format, a pattern or a list of values
// marks it as multi-line, an id, a secret or a search. Every other text has the format one-line.
func TestEachTextIsOneLine(t *testing.T) {
	t.Parallel()
	several := strings.Fields("description note notes message reason lost_reason terms billing_address address metadata")
	opaque := strings.Fields("q url logo cursor currency id publishable_key secret_key webhook_secret hash query redirect_uris browser_origins scopes type types event_types origin ids " +
		"object_ids unit_ids service_ids package_ids proof page operator")
	for name, doc := range map[string][]byte{
		"public": proto.OpenAPI, "identity": proto.InternalIdentity, "customers": proto.InternalCustomers, "bookings": proto.InternalBookings, "payments": proto.InternalPayments, "webhooks": proto.InternalWebhooks,
	} {
		byID, err := forms.Load(doc)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		var check func(where string, f forms.Field)
		check = func(where string, f forms.Field) {
			where += "." + f.Name
			if f.Items != nil {
				item := *f.Items
				item.Name = f.Name
				check(where, item)
			}
			for _, sub := range f.Fields {
				check(where, sub)
			}
			if f.Kind != "string" || f.Enum != nil || f.Pattern != "" || slices.Contains(several, f.Name) || slices.Contains(opaque, f.Name) || strings.HasSuffix(f.Name, "_id") {
				return
			}
			if checked++; f.Format == "" {
				t.Errorf("%s: %s is neither of the format one-line nor known to be of several lines", name, where)
			}
		}
		for id, form := range byID {
			for _, f := range slices.Concat(form.Query, form.Body) {
				check(id, f)
			}
		}
		if checked == 0 && name != "webhooks" && name != "payments" && name != "customers" {
			t.Errorf("%s: no text was checked", name)
		}
	}
}
