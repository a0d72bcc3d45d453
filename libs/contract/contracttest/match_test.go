package contracttest

import (
	"os"
	"strings"
	"testing"

	"holdfast.dev/libs/contract"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../testdata/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ method, path, id, values, allow string }{
		{"GET", "/orders", "listOrders", "", "GET POST"},
		{"POST", "/orders", "createOrder", "", "GET POST"},
		{"GET", "/orders/or_1", "getOrder", "or_1", "DELETE GET"},
		{"GET", "/orders/latest", "getLatestOrder", "", "GET"},
		{"DELETE", "/orders/latest", "", "", "GET"},
		{"POST", "/orders/or_1/lines/7/close", "closeLine", "or_1 7", "POST"},
		{"GET", "/orders/latest/lines/7/close", "", "", "POST"},
		{"HEAD", "/orders", "", "", "GET POST"},
		{"OPTIONS", "/orders/or_1", "", "", "DELETE GET"},
		{"get", "/orders", "", "", "GET POST"},
		{"GET", "/orders/", "", "", ""},
		{"GET", "/orders/or_1/", "", "", ""},
		{"GET", "//orders", "", "", ""},
		{"GET", "/orders//lines/7/close", "", "", ""},
		{"GET", "/orders/a/b", "", "", ""},
		{"GET", "/", "", "", ""},
		{"GET", "", "", "", ""},
		{"GET", "/Orders", "", "", ""},
		{"GET", "/orders/a%2Fb", "getOrder", "a%2Fb", "DELETE GET"},
	} {
		op, values, allow := Match(c, tc.method, tc.path)
		id := ""
		if op != nil {
			id = op.ID
		}
		if got := strings.Join(values, " "); id != tc.id || got != tc.values || strings.Join(allow, " ") != tc.allow {
			t.Errorf("%s %s: %q %q %v, want %q %q %q", tc.method, tc.path, id, got, allow, tc.id, tc.values, tc.allow)
		}
	}
}
