package contract_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/contract"
)

// The contract specifies the kind of each id in a body. Paths and filters accept any text, and an id of another kind finds nothing.
func TestIDsInBodiesStateTheirKind(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Pattern string  `yaml:"pattern"`
		Message string  `yaml:"x-message"`
		Items   *schema `yaml:"items"`
	}
	var tree struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]schema `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	bodies := regexp.MustCompile(`(Create|Update|Replay)$`)
	ids := regexp.MustCompile(`_ids?$`)
	found := 0
	for name, s := range tree.Components.Schemas {
		for field, p := range s.Properties {
			if !bodies.MatchString(name) || !ids.MatchString(field) || field == "tax_id" { // a tax number of an authority
				continue
			}
			if name == "PaymentIntentCreate" && field == "booking_id" || name == "RefundCreate" {
				continue // as in a path: any id without a booking or a payment intent is 404
			}
			found++
			if p.Items != nil {
				p = *p.Items
			}
			if prefix := strings.TrimPrefix(p.Pattern, "^"); prefix == "" || !strings.HasSuffix(p.Message, "ID that starts with "+prefix+".") {
				t.Errorf("%s.%s: pattern %q, x-message %q", name, field, p.Pattern, p.Message)
			}
		}
	}
	if found < 17 {
		t.Errorf("%d ids", found)
	}
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ op, body, want string }{
		{"createBooking", `{"unit_id":"srv_01h455vb4pex5vsknk084sn02q"}`, "unit_id: Must be a unit ID that starts with un_."},
		{"createBooking", `{"unit_id":""}`, "unit_id: Must be a unit ID that starts with un_."},
		{"createBooking", `{"unit_id":null,"customer_id":"cu_x"}`, ""},
		{"createService", `{"name":"Hall","unit_ids":["un_x","unx"]}`, "unit_ids.1: Must be a unit ID that starts with un_."},
	} {
		op := c.Operation(tc.op)
		if got := messages(op.ValidateBody(parse(t, op, tc.body), false)); !strings.Contains(got, tc.want) || tc.want == "" && strings.Contains(got, "_id") {
			t.Errorf("%s %s: %s", tc.op, tc.body, got)
		}
	}
}
