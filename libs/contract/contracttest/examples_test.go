package contracttest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

// TestExamplesConformToTheContract validates the examples of the contract with the code that validates requests and responses.
func TestExamplesConformToTheContract(t *testing.T) {
	t.Parallel()
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range spec.Operations() {
		text, err := os.ReadFile("../../../proto/examples/" + op.ID + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		var e struct {
			Request struct {
				Method, Path string
				Headers      map[string]string
				Body         json.RawMessage
			}
			Response struct {
				Status int
				Body   json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &e); err != nil {
			t.Errorf("%s: %v", op.ID, err)
			continue
		}
		req := httptest.NewRequest(e.Request.Method, "/api/v1"+e.Request.Path, nil)
		if found, _, _ := Match(spec, req.Method, req.URL.EscapedPath()[len("/api/v1"):]); found != op {
			t.Errorf("%s: %s %s is another operation", op.ID, req.Method, req.URL)
		}
		if e.Response.Status != op.Success {
			t.Errorf("%s: status %d, want %d", op.ID, e.Response.Status, op.Success)
		}
		if _, err := op.ParseQuery(req.URL.RawQuery); err != nil {
			t.Errorf("%s: %v", op.ID, err)
		}
		if op.HasBody {
			checkExampleBody(t, op, e.Request.Body)
		}
		res := &http.Response{StatusCode: e.Response.Status, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}}}
		switch {
		case len(e.Response.Body) > 0 && e.Response.Body[0] == '"':
			continue // a string: the response is not JSON
		case op.Success == http.StatusCreated:
			res.Header.Set("Location", "/api/v1/example")
		}
		for _, problem := range NewService(t, proto.OpenAPI).problems(req, res, bytes.TrimSpace(e.Response.Body)) {
			t.Errorf("%s: %s", op.ID, problem)
		}
	}
}

func checkExampleBody(t *testing.T, op *contract.Operation, text []byte) {
	t.Helper()
	body, err := op.Parse(text)
	if err == nil {
		err = op.ValidateBody(body, true)
	}
	if err != nil {
		t.Errorf("%s: %s: %v", op.ID, text, err)
	}
}
