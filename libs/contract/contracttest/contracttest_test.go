package contracttest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

const tenant = `{"id":"tn_1","object":"tenant","name":"Demo","slug":"demo","timezone":"UTC","currency":"USD","country":null,` +
	`"booking_policy":{"auto_confirm":false,"hold_ttl_minutes":null,"min_notice_minutes":null,"max_advance_days":null,"confirm_on_deposit":true,` +
	`"refund_rules":null,"auto_refund":false,"refund_late_payments":false},` +
	`"payments":{"provider":null,"configured":false,"events":null},"mode":"test"}`

const notFound = `{"error":{"type":"invalid_request_error","code":"not_found","message":"Nothing.","doc_url":"https://booking.test/docs/errors#not_found","request_id":"req_1"}}`

// TestProblems checks responses with one fault each. The first one has none.
func TestProblems(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := NewService(t, append(doc, "\n# of this test\n"...)) // with its own coverage
	for _, tc := range []struct {
		name, method, path string
		status             int
		header, body, want string
	}{
		{"right", "GET", "/api/v1/tenant", 200, "", tenant, ""},
		{"right on the other base", "GET", "/v1/tenant", 200, "", tenant, ""},
		{"undeclared property", "GET", "/api/v1/tenant", 200, "", strings.Replace(tenant, `"id"`, `"more":1,"id"`, 1), "'more'"},
		{"missing property", "GET", "/api/v1/tenant", 200, "", strings.Replace(tenant, `"slug":"demo",`, "", 1), "slug"},
		{"properties in another order", "GET", "/api/v1/tenant", 200, "", strings.Replace(tenant, `"name":"Demo","slug":"demo"`, `"slug":"demo","name":"Demo"`, 1), "body: the order"},
		{"another order within", "GET", "/api/v1/tenant", 200, "", strings.Replace(tenant, `"provider":null,"configured":false`, `"configured":false,"provider":null`, 1), "body.payments: the order"},
		{"wrong type", "GET", "/api/v1/tenant", 200, "", strings.Replace(tenant, `"demo"`, "5", 1), "string"},
		{"undeclared header", "GET", "/api/v1/tenant", 200, "X-Debug", tenant, "X-Debug"},
		{"undeclared status", "GET", "/api/v1/tenant", 409, "", notFound, "does not declare this status"},
		{"undeclared code", "GET", "/api/v1/tenant", 422, "", strings.Replace(strings.Replace(notFound, `{"error"`, `{"message":"","errors":{},"error"`, 1), "not_found", "limit_reached", 2), "does not declare the code limit_reached"},
		{"success on no path", "GET", "/api/v1/nothing", 200, "", tenant, "not in the contract"},
		{"success on no method", "PUT", "/api/v1/tenant", 200, "", tenant, "not in the contract"},
		{"405 without Allow", "PUT", "/api/v1/tenant", 405, "", notFound, "without Allow"},
		{"404 of no path", "GET", "/api/v1/nothing", 404, "", notFound, ""},
		{"no envelope", "GET", "/api/v1/nothing", 404, "", "404 page not found", "no envelope"},
		{"other request id", "GET", "/api/v1/nothing", 404, "", strings.Replace(notFound, "req_1", "req_2", 1), "differs"},
		{"no code", "GET", "/api/v1/nothing", 404, "", strings.Replace(notFound, `"code":"not_found",`, "", 1), "needed"},
		{"doc_url elsewhere", "GET", "/api/v1/nothing", 404, "", strings.Replace(notFound, "#not_found", "#other", 1), "doc_url"},
		{"401 without challenge", "GET", "/api/v1/tenant", 401, "", strings.Replace(notFound, "invalid_request_error", "authentication_error", 1), "WWW-Authenticate"},
		{"422 without fields", "GET", "/api/v1/tenant", 422, "", notFound, "a 422 needs"},
	} {
		req := httptest.NewRequest(tc.method, tc.path, nil)
		res := &http.Response{StatusCode: tc.status, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}}}
		if tc.header != "" {
			res.Header.Set(tc.header, "1")
		}
		got := strings.Join(c.problems(req, res, []byte(tc.body)), "\n")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	left := c.Uncovered("identity")
	if slices.Contains(left, "getTenant 200") || !slices.Contains(left, "getMe 200") || slices.Contains(left, "getCustomer 200") {
		t.Errorf("uncovered: %v", left)
	}
}

// TestGatewayHeaders checks that responses to clients must contain the headers that only the gateway adds.
func TestGatewayHeaders(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}}}
	got := strings.Join(New(t, doc).problems(httptest.NewRequest("GET", "/api/v1/tenant", nil), res, []byte(tenant)), "\n")
	if !strings.Contains(got, "RateLimit-Remaining") {
		t.Errorf("a success without RateLimit headers: %q", got)
	}
}
