package forms

import (
	"slices"
	"testing"

	"holdfast.dev/proto"
)

// The forms of the public contract contain its types and bounds.
func TestLoad(t *testing.T) {
	t.Parallel()
	forms, err := Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	customer := forms["createCustomer"]
	if f := customer.Field("first_name"); f.Kind != "string" || f.MaxLen != 100 || f.MinLen == 0 && !f.Required {
		t.Errorf("first_name: %+v", f)
	}
	if f := customer.Field("email"); f.MaxLen != 255 || !f.Nullable || f.Format != "email" {
		t.Errorf("email: %+v", f)
	}
	if f := forms["createPackage"].Field("base_price"); !f.IsMoney() {
		t.Errorf("base_price: %+v", f)
	}
	if f := forms["createInvoice"].Field("line_items"); f.Kind != "array" || f.MaxItems != 100 || f.Items == nil || !find(f.Items.Fields, "unit_amount").IsMoney() {
		t.Errorf("line_items: %+v", f)
	}
	if f := forms["updateCustomer"].Field("phone"); !f.Nullable || f.MaxLen != 50 {
		t.Errorf("phone: %+v", f)
	}
	if f := forms["listBookings"].Param("status"); f.Kind != "array" || f.Items == nil || !slices.Contains(f.Items.Enum, "pending") {
		t.Errorf("status: %+v", f)
	}
	if f := forms["listAvailability"].Param("from"); !f.Required || f.Format != "date" {
		t.Errorf("from: %+v", f)
	}
	if f := forms["cancelBooking"].Field("nothing"); f.Name != "" {
		t.Errorf("a field that does not exist: %+v", f)
	}
}

// The forms of internal documents contain the path of a call and what its caller needs.
func TestFormsOfInternalCalls(t *testing.T) {
	t.Parallel()
	forms, err := Load(proto.InternalIdentity)
	if err != nil {
		t.Fatal(err)
	}
	rotate := forms["rotateApiKey"]
	if rotate.Method != "POST" || rotate.Path != "/internal/v1/api-keys/{id}/rotate" || rotate.Permission != "manage keys" || !rotate.Secret || !rotate.HasBody || rotate.Scopes != nil {
		t.Errorf("%+v", rotate)
	}
	if f := rotate.Field("overlap_seconds"); f.Kind != "integer" || f.Max != 604_800 || !f.Required {
		t.Errorf("%+v", f)
	}
	if f := forms["createApiKey"].Field("scopes"); f.MinItems != 1 {
		t.Errorf("%+v", f)
	}
	if list := forms["listMembers"]; list.Method != "GET" || list.HasBody || list.Secret {
		t.Errorf("%+v", list)
	}
	if forms, err = Load(proto.InternalPayments); err != nil || !slices.Equal(forms["connectGatewayAccount"].Scopes, []string{"payments:write"}) {
		t.Errorf("%v: %+v", err, forms["connectGatewayAccount"])
	}
}
