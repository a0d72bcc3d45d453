package contract

import (
	"slices"
	"testing"

	"holdfast.dev/proto"
)

// The forms of the public contract have its types and bounds.
func TestForms(t *testing.T) {
	t.Parallel()
	forms, err := Forms(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	customer := forms["createCustomer"]
	if f := customer.Field("first_name"); f.Kind != "string" || f.MaxLen != 100 || f.MinLen == 0 && !f.Required {
		t.Errorf("first_name: %+v", f)
	}
	if f := customer.Field("email"); f.MaxLen != 255 || f.Nullable || f.Format != "email" {
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
