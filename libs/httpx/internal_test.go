package httpx_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
)

const internalCalls = `
openapi: 3.1.0
paths:
  /internal/v1/units/{id}/days/{day_id}:
    post:
      operationId: changeUnitDay
      x-callers: [console]
      x-required-scopes: ["read:units", "read:bookings"]
      parameters:
        - { name: from, in: query, required: true, schema: { type: string, format: date } }
      requestBody:
        required: true
        content: { application/json: { schema: { type: object, required: [count], properties: { count: { type: integer, minimum: 1 }, note: { type: string } } } } }
      responses: { "200": { description: Done. } }
`

// Internal calls have the paths, peers, callers and inputs that their document specifies.
func TestMountInternal(t *testing.T) {
	t.Parallel()
	keys := map[string]caller.Key{"console": {ID: "k1", Secret: []byte(strings.Repeat("c", 32))}, "customers": {ID: "k1", Secret: []byte(strings.Repeat("d", 32))}}
	permitted := caller.Keys{}
	for peer, key := range keys {
		permitted[peer] = []caller.Key{key}
	}
	s := &httpx.Server{Service: "bookings", Verifier: &caller.Verifier{Self: "bookings", Keys: permitted}}
	engine := httpx.NewEngine("https://booking.test")
	err := s.MountInternal(engine, []byte(internalCalls), map[string]httpx.Route{"changeUnitDay": {Handle: func(c *gin.Context) error {
		body, err := httpx.Body[struct {
			Count int `json:"count"`
		}](c)
		_, _ = fmt.Fprint(c.Writer, c.Param("id"), " ", c.Param("day_id"), " ", httpx.Query(c).String("from"), " ", body.Count)
		return err
	}}})
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"read:bookings", "read:units"}
	const query, body = "?from=2030-05-01", `{"count":3}`
	for _, tc := range []struct {
		peer        string
		scopes      []string
		query, body string
		status      int
		says        string
	}{
		{"console", both, query, body, 200, "un_1 2 2030-05-01 3"},
		{"console", both, query, `{"count":3,"colour":"red"}`, 200, "un_1 2 2030-05-01 3"},
		{"console", []string{"read:units"}, query, body, 403, "read:bookings"},
		{"console", nil, "", "{", 403, "read:units"},
		{"customers", both, "", "{", 401, "invalid_credential"},
		{"console", both, query, "{", 400, "malformed_json"},
		{"console", both, query, "", 400, "malformed_json"},
		{"console", both, query, `{"count":3,"count":4}`, 400, "malformed_json"},
		{"console", both, "", body, 422, `{"from":["Is required."]}`},
		{"console", both, "?from=May", body, 422, `{"from":[`},
		{"console", both, query + "&to=2030-05-01", body, 422, `{"to":["Unknown parameter.`},
		{"console", both, query, `{"count":null}`, 422, `{"count":["Must be a whole number."]}`},
		{"console", both, query, `{}`, 422, `{"count":["Is required."]}`},
		{"console", both, query, `{"count":0,"note":7}`, 422, `{"count":["Must be at least 1."],"note":["Must be a string."]}`},
	} {
		req := httptest.NewRequest("POST", "/internal/v1/units/un_1/days/2"+tc.query, strings.NewReader(tc.body))
		req.Header.Set("Content-Type", "application/json")
		who := caller.Service("gateway", ids.New[ids.TenantPrefix](), caller.Test)
		who.Scopes = tc.scopes
		signed, err := (&caller.Signer{From: tc.peer, Keys: caller.Keys{"bookings": {keys[tc.peer]}}}).Sign(who, "bookings", req.Method, req.URL.Path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, req)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) || tc.status == 403 && !strings.Contains(w.Header().Get("WWW-Authenticate"), tc.says) {
			t.Errorf("%+v: %d %s", tc, w.Code, w.Body.String())
		}
	}
	for document, want := range map[string]string{
		internalCalls: "changeUnitDay has no handler; changeUnitWeek is not an operation of bookings", "{": "contract",
		strings.Replace(internalCalls, "x-callers: [console]", "", 1): "x-callers is missing",
	} {
		err := s.MountInternal(httpx.NewEngine("https://booking.test"), []byte(document), map[string]httpx.Route{"changeUnitWeek": {}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
