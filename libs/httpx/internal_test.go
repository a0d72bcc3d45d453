package httpx_test

import (
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
    get: { operationId: unitDay, x-required-scopes: ["read:units", "read:bookings"] }
`

// Internal calls are where their document says, for one peer, and for callers with their scopes.
func TestMountInternal(t *testing.T) {
	t.Parallel()
	keys := map[string]caller.Key{"console": {ID: "k1", Secret: []byte(strings.Repeat("c", 32))}, "customers": {ID: "k1", Secret: []byte(strings.Repeat("d", 32))}}
	s := &httpx.Server{Service: "bookings", Verifier: &caller.Verifier{Self: "bookings", Keys: caller.Keys{}}}
	for peer, key := range keys {
		s.Verifier.Keys[peer] = []caller.Key{key}
	}
	engine := httpx.NewEngine("https://booking.test")
	err := s.MountInternal(engine, []byte(internalCalls), "console", map[string]httpx.Handler{"unitDay": func(c *gin.Context) error {
		_, err := c.Writer.WriteString(c.Param("id") + " " + c.Param("day_id"))
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		peer   string
		scopes []string
		status int
		says   string
	}{
		{"console", []string{"read:bookings", "read:units"}, 200, "un_1 2"},
		{"console", []string{"read:units"}, 403, "read:bookings"},
		{"console", nil, 403, "read:units"},
		{"customers", []string{"read:bookings", "read:units"}, 401, "invalid_credential"},
	} {
		req := httptest.NewRequest("GET", "/internal/v1/units/un_1/days/2", nil)
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
			t.Errorf("%s with %v: %d %s", tc.peer, tc.scopes, w.Code, w.Body.String())
		}
	}
	for document, want := range map[string]string{internalCalls: "unitWeek", "{": "contract"} {
		err := s.MountInternal(httpx.NewEngine("https://booking.test"), []byte(document), "console", map[string]httpx.Handler{"unitWeek": nil})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
