package httpx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/obs"
)

const (
	known   = "cu_known"
	foreign = "cu_foreign" // of the other mode
	missing = "cu_missing"
)

var errNone = apperr.New(apperr.NotFound, "customer_not_found", "Customer not found.")

// record is the idempotency table of one test: key → fingerprint and response.
type record struct {
	fingerprint [32]byte
	response    idem.Response
}

// testService is a customers service with one customer, and the data to call it.
type testService struct {
	t       *testing.T
	handler http.Handler
	spec    *contract.Contract
	secret  []byte
	signer  *caller.Signer
	checker *contracttest.Checker
	records map[string]record
	checks  int // lookups of stored responses
	exists  int // lookups of the id in the path
	fail    error
	panics  bool
	lastID  string
	log     bytes.Buffer
}

func (d *testService) Check(ctx context.Context) (*idem.Response, error) {
	d.checks++
	req, _ := idem.RequestFrom(ctx)
	rec, ok := d.records[req.Key]
	switch {
	case !ok:
		return nil, nil
	case rec.fingerprint != req.Fingerprint:
		return nil, apperr.ErrMismatch
	}
	response := rec.response
	return &response, nil
}

func (d *testService) existing(_ context.Context, id string) error {
	d.exists++
	switch id {
	case known:
		return nil
	case foreign:
		return apperr.ErrMode
	}
	return errNone
}

const customer = `{"id":"cu_known","object":"customer","name":"Ada <&> L","first_name":"Ada","last_name":null,"email":"a@b.co",` +
	`"phone":null,"company":null,"tax_id":null,"billing_address":null,"country":null,"locale":null,"metadata":{},"mode":"test","version":3,"erased_at":null,"created_at":"2026-05-10T15:04:05Z","updated_at":"2026-05-10T15:04:05Z"}`

// write stores the response and sends it, as a use case does in one transaction.
func (d *testService) write(c *gin.Context, status int, location string) error {
	ctx := c.Request.Context()
	if d.panics {
		panic("a defect")
	}
	if id := c.Param("id"); id != "" {
		d.lastID = id
		if err := d.existing(ctx, id); err != nil {
			d.exists--
			return err
		}
	}
	if d.fail != nil {
		return d.fail
	}
	if err := httpx.IfMatch(c).Check(3); err != nil {
		return err
	}
	response := idem.Response{Status: status, Location: location, ETag: `"3"`, Body: []byte(customer)}
	if req, ok := idem.RequestFrom(ctx); ok {
		found, err := d.Check(ctx)
		if err != nil {
			return err
		}
		if found != nil {
			found.Replayed = true
			return httpx.Send(c, *found)
		}
		response.ExpiresAt = time.Unix(1_800_000_000, 0)
		d.records[req.Key] = record{req.Fingerprint, response}
	}
	return httpx.Send(c, response)
}

// routes returns the handlers of operations on customers. The others return an error.
func (d *testService) routes() map[string]httpx.Route {
	routes := d.customers()
	for _, op := range d.spec.Operations() {
		if _, ok := routes[op.ID]; !ok && op.Service == "customers" {
			routes[op.ID] = httpx.Route{Handle: func(*gin.Context) error { return errors.New("not requested") }}
		}
	}
	return routes
}

func (d *testService) customers() map[string]httpx.Route {
	type body struct {
		FirstName *string `json:"first_name"`
		Email     *string `json:"email"`
	}
	return map[string]httpx.Route{
		"listCustomers": {Handle: func(c *gin.Context) error {
			if httpx.Query(c).String("cursor") != "" {
				return apperr.ErrCursor
			}
			data := make([]json.RawMessage, httpx.Query(c).Int("limit", 0)%3)
			for i := range data {
				data[i] = json.RawMessage(customer)
			}
			return httpx.JSON(c, http.StatusOK, "", httpx.ListBody(data, len(data) > 0, "next<"))
		}},
		"createCustomer": {Handle: func(c *gin.Context) error {
			b, err := httpx.Body[body](c)
			if err != nil || b.FirstName == nil || b.Email == nil {
				return errors.Join(errors.New("no body"), err)
			}
			return d.write(c, http.StatusCreated, "/api/v1/customers/"+known)
		}},
		"getCustomer": {Exists: d.existing, Handle: func(c *gin.Context) error {
			if err := d.existing(c.Request.Context(), c.Param("id")); err != nil {
				return err
			}
			return httpx.JSON(c, http.StatusOK, `"3"`, []byte(customer))
		}},
		"updateCustomer": {Exists: d.existing, Handle: func(c *gin.Context) error { return d.write(c, http.StatusOK, "") }},
		"deleteCustomer": {Exists: d.existing, Handle: func(c *gin.Context) error {
			if err := d.existing(c.Request.Context(), c.Param("id")); err != nil {
				return err
			}
			return httpx.JSON(c, http.StatusNoContent, "", nil)
		}},
	}
}

func document(t testing.TB) []byte {
	t.Helper()
	doc, err := os.ReadFile("../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func open(t *testing.T) *testService {
	t.Helper()
	doc := document(t)
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("0123456789abcdef0123456789abcdef")
	d := &testService{
		t: t, records: map[string]record{}, checker: contracttest.NewService(t, doc),
		signer: &caller.Signer{From: "gateway", Keys: caller.Keys{"customers": {{ID: "k1", Secret: secret}}}},
	}
	d.spec, d.secret = c, secret
	d.mount(d.routes())
	return d
}

// mount replaces the served routes.
func (d *testService) mount(routes map[string]httpx.Route) {
	d.t.Helper()
	s := &httpx.Server{
		Service: "customers", Contract: d.spec, Idempotency: d,
		Verifier: &caller.Verifier{Self: "customers", Keys: caller.Keys{"gateway": {{ID: "k1", Secret: d.secret}}}},
	}
	e := httpx.NewEngine("https://booking.test")
	if err := s.Mount(e, routes); err != nil {
		d.t.Fatal(err)
	}
	d.handler = obs.Handler(slog.New(slog.NewJSONHandler(&d.log, nil)), nil, e)
}

// call sends one request as the gateway would; headers are pairs. It checks every response against the contract.
func (d *testService) call(method, target, body string, headers ...string) *http.Response {
	d.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, r)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	who := caller.Caller{Tenant: ids.New[ids.TenantPrefix](), Mode: caller.Test, Credential: "key_1", Kind: "api_key", RequestID: "req_1"}
	signed, err := d.signer.Sign(who, "customers", method, req.URL.EscapedPath(), time.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set(caller.Header, signed)
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" || headers[i] != "Content-Type" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return d.send(req)
}

func (d *testService) send(req *http.Request) *http.Response {
	d.t.Helper()
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, req)
	res := rec.Result()
	d.checker.Check(d.t, req, res, rec.Body.Bytes())
	res.Body = io.NopCloser(rec.Body)
	return res
}

// verdict returns "status code param".
func verdict(t *testing.T, res *http.Response) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Param string }
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 {
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return strings.TrimSpace(strings.Join([]string{res.Status[:3], e.Error.Code, e.Error.Param}, " "))
}
