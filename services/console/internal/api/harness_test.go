package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/console/internal/api"
	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/peers"
)

// roleScopes holds the scopes of each role, as in services/identity/internal/domain/role.go.
var roleScopes = map[string][]string{
	"owner": proto.Scopes,
	"admin": proto.Scopes,
	"staff": {
		"read:bookings", "write:bookings", "read:customers", "write:customers", "read:leads", "write:leads", "read:quotes", "write:quotes",
		"read:invoices", "write:invoices", "read:services", "read:units", "payments:read",
	},
	"viewer": {"read:bookings", "read:customers", "read:leads", "read:quotes", "read:invoices", "read:services", "read:units", "payments:read"},
}

// rolePermissions holds the other permissions of each role, from the same file.
var rolePermissions = map[string][]string{
	"owner": {"manage owners", "manage operators", "manage apps", "manage keys", "manage settings", "read audit", "revoke grants"},
	"admin": {"manage operators", "manage apps", "manage keys", "manage settings", "read audit", "revoke grants"},
}

// roles are the names of all roles, in descending order of permissions.
var roles = []string{"owner", "admin", "staff", "viewer"}

// The tenants of all tests.
var (
	alpha = ids.New[ids.TenantPrefix]()
	beta  = ids.New[ids.TenantPrefix]()
)

// noon is the console's time in all tests. The contract's examples are from the same year.
var noon = time.Date(2027, 3, 1, 17, 0, 0, 0, time.UTC)

// sum returns the hash by which identity finds a token.
func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// secretOf returns the key that the console shares with a service. The key of gateway is the one for its calls to the console.
func secretOf(service string) []byte { return []byte(sum(service)) }

// call is a request that reached a service.
type call struct {
	Service, ID  string // ID is the operationId
	Method, Path string
	Query        url.Values
	Body         []byte
	Who          caller.Caller
	Header       http.Header
	Params       []string
}

// writes reports whether the call can change data.
func (c call) writes() bool { return c.Method != http.MethodGet && !slices.Contains(ofSessions, c.ID) }

// ofSessions are the calls about sessions and about stored form input.
var ofSessions = []string{"lookupSession", "saveDraft", "lookupDraft"}

// body is the request's body as an object.
func (c call) body(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	dec := json.NewDecoder(bytes.NewReader(c.Body))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%s: %q: %v", c.ID, c.Body, err)
	}
	return out
}

// response is a service's response: a status with an object, or with an error of the API.
type response struct {
	Status int
	Body   any
}

// platform simulates all services that the console calls, and contains the console in front of them.
type platform struct {
	t        *testing.T
	contract *contract.Contract
	engine   *gin.Engine
	server   *api.Server
	app      *app.App
	lax      bool // a request that violates the contract is refused; otherwise it fails the test

	mu        sync.Mutex
	calls     []call                          // guarded by mu
	responses map[string]func(call) response  // by operationId; guarded by mu
	sessions  map[string]*internalapi.Session // by the token's hash; guarded by mu
	tokens    map[string]string               // form tokens by session token; guarded by mu
	drafts    map[string]internalapi.NewDraft // by operator and key; guarded by mu
}

// parts holds the values that are the same for all platforms.
var parts = sync.OnceValue(func() (p struct {
	contract   *contract.Contract
	operations domain.Operations
	messages   *locale.Messages
	err        error
},
) {
	if p.messages, p.err = pages.NewMessages(); p.err != nil {
		return p
	}
	if p.contract, p.err = contract.Public(); p.err == nil {
		p.operations, p.err = domain.NewOperations(p.contract, proto.OpenAPI, map[string][]byte{
			"bookings": proto.InternalBookings, "identity": proto.InternalIdentity, "payments": proto.InternalPayments, "webhooks": proto.InternalWebhooks,
		})
	}
	return p
})

// options configure a platform before it is built.
type options struct {
	publicURL string
	away      string // a service that does not respond
	beat      time.Duration
}

// newPlatform builds the console as wire.go does, with services that return the contract's examples.
func newPlatform(t *testing.T, o options) *platform {
	t.Helper()
	common := parts()
	if common.err != nil {
		t.Fatal(common.err)
	}
	p := &platform{t: t, contract: common.contract, responses: map[string]func(call) response{}, sessions: map[string]*internalapi.Session{}, tokens: map[string]string{}, drafts: map[string]internalapi.NewDraft{}}
	services := &peers.Services{Operations: common.operations, Clients: map[string]*peer.Client{}}
	own, _ := proto.ServiceNamed("console")
	for _, name := range own.Calls {
		server := httptest.NewServer(p.service(name))
		t.Cleanup(server.Close)
		address := server.URL
		if name == o.away {
			address = "http://127.0.0.1:1" // nothing listens there, and no other test can start a listener
		}
		keys := caller.Keys{name: {{ID: "k1", Secret: secretOf(name)}}}
		services.Clients[name] = &peer.Client{Target: name, BaseURL: address, Signer: &caller.Signer{From: "console", Keys: keys}, Timeout: 5 * time.Second}
	}
	if o.publicURL == "" {
		o.publicURL = "http://console.test"
	}
	now := func() time.Time { return noon }
	p.app = &app.App{Services: services, Names: app.NewNames(services), Now: now, Pauses: []time.Duration{time.Millisecond, time.Millisecond}}
	var err error
	p.server, err = api.New(api.Options{
		App: p.app, Operations: common.operations, Messages: common.messages, Live: app.NewLive(services, 100), LiveTime: time.Minute, Beat: o.beat, PublicURL: o.publicURL, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.engine = httpx.NewEngine("https://booking.test")
	guard := &httpx.Server{Service: "console", Contract: common.contract, Verifier: &caller.Verifier{Self: "console", Keys: caller.Keys{"gateway": {{ID: "k1", Secret: secretOf("gateway")}}}}}
	p.server.Mount(p.engine, guard.Internal)
	for _, role := range roles {
		p.signIn(role, tenant(alpha, "alpha", role))
	}
	return p
}

// tenant returns a tenant of which an operator is a member.
func tenant(id ids.Tenant, slug, role string) internalapi.SessionTenant {
	return internalapi.SessionTenant{
		ID: id.String(), Slug: slug, Name: strings.ToUpper(slug), Role: role, Scopes: roleScopes[role], Permissions: rolePermissions[role],
		Timezone: "America/New_York", Currency: "USD", PolicyVersion: 1,
	}
}

// proofOf returns the proof that a form was on a page of an operator.
func proofOf(operator string) string { return "proof-" + operator }

// signIn creates a session whose token is name.
func (p *platform) signIn(name string, tenants ...internalapi.SessionTenant) *internalapi.Session {
	s := &internalapi.Session{
		SessionID: "ses_" + name, SignedInAt: noon.Add(-time.Minute), Tenants: tenants, FormProof: proofOf("op_01k00000000000000000000001"),
		Operator: internalapi.SessionOperator{ID: "op_01k00000000000000000000001", Email: name + "@example.com", Name: "Olive " + name},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[sum(name)] = s
	return s
}

// setResponse replaces a service's response to an operation.
func (p *platform) setResponse(id string, f func(call) response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responses[id] = f
}

// object returns a response with status 200.
func object(o map[string]any) func(call) response {
	return func(call) response { return response{http.StatusOK, o} }
}

// refusal returns a response that is an error of the API.
func refusal(status int, code string, fields map[string][]string) func(call) response {
	body := map[string]any{"error": map[string]any{"code": code, "message": "It is refused: " + code}}
	if fields != nil {
		body["errors"] = fields
	}
	return func(call) response { return response{status, body} }
}

// recordedCalls returns the calls since the last forget, without those about sessions.
func (p *platform) recordedCalls() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(c call) bool { return slices.Contains(ofSessions, c.ID) })
}

// written returns the calls since the last forget that can change something.
func (p *platform) written() []call {
	return slices.DeleteFunc(p.recordedCalls(), func(c call) bool { return !c.writes() })
}

func (p *platform) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// service responds as the service of that name. It accepts only calls that the console has signed for it.
func (p *platform) service(name string) http.Handler {
	verifier := &caller.Verifier{Self: name, Keys: caller.Keys{"console": {{ID: "k1", Secret: secretOf(name)}}}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil {
			p.t.Errorf("%s: %s %s is not signed: %v", name, r.Method, r.URL, err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			p.t.Error(err)
		}
		c := call{Service: name, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Body: body, Who: who, Header: r.Header}
		var out response
		if strings.HasPrefix(r.URL.Path, "/internal/v1/") {
			p.name(&c)
			out = p.respond(c, func() response { return p.internal(c) })
		} else {
			out = p.public(&c, r.URL.EscapedPath(), r.URL.RawQuery)
		}
		writeResponse(w, out)
	})
}

func writeResponse(w http.ResponseWriter, out response) {
	if raw, ok := out.Body.([]byte); ok {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(out.Status)
		_, _ = w.Write(raw)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(out.Status)
	if out.Body != nil {
		_ = json.NewEncoder(w).Encode(out.Body)
	}
}

// respond records a call and returns the response that the test set, or else that of other.
func (p *platform) respond(c call, other func() response) response {
	p.mu.Lock()
	p.calls = append(p.calls, c)
	f := p.responses[c.ID]
	p.mu.Unlock()
	if f != nil {
		return f(c)
	}
	return other()
}

// public responds to an operation of the contract. A request that the contract does not allow fails the test.
func (p *platform) public(c *call, path, query string) response {
	op, values, _ := contracttest.Match(p.contract, c.Method, strings.TrimPrefix(path, "/api/v1"))
	if op == nil || op.Service != c.Service {
		p.t.Errorf("%s has no %s %s", c.Service, c.Method, path)
		return response{http.StatusNotFound, nil}
	}
	c.ID = op.ID
	c.Params = append(c.Params, values...)
	for _, scope := range op.Scopes {
		if !c.Who.Has(scope) {
			p.t.Errorf("%s is called without %s", op.ID, scope)
		}
	}
	_, err := op.ParseQuery(query)
	if len(c.Body) > 0 && err == nil {
		var b *contract.Body
		if b, err = op.Parse(c.Body); err == nil {
			err = op.ValidateBody(b, true)
		}
	}
	return p.respond(*c, func() response {
		if err == nil {
			return p.example(op, *c)
		}
		if !p.lax {
			p.t.Errorf("%s?%s %s: %v", op.ID, query, c.Body, err)
		}
		return refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"name": {"Is required."}})(*c)
	})
}

// example returns the contract's example of an operation, for the requested id.
func (p *platform) example(op *contract.Operation, c call) response {
	if op.Stream {
		return response{http.StatusNoContent, nil}
	}
	id := op.ID
	if id == "getInvoice" {
		id = "recordInvoicePayment" // its example is the same invoice with a payment
	}
	body, status := exampleOf(p.t, id)
	if o, ok := body.(map[string]any); ok {
		if id, _ := o["id"].(string); id != "" && len(c.Params) > 0 && strings.Split(id, "_")[0] == strings.Split(c.Params[0], "_")[0] {
			o["id"] = c.Params[0]
		}
		if list, ok := o["data"].([]any); ok && o["has_more"] != nil {
			o["data"], o["has_more"], o["next_cursor"] = list, false, nil
		}
	}
	return response{status, body}
}

// exampleOf returns the response of the contract's example of an operation. Each call returns its own copy.
func exampleOf(t *testing.T, operation string) (body any, status int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../../../proto/examples", operation+".json"))
	if err != nil {
		t.Errorf("no example of %s: %v", operation, err)
		return nil, http.StatusNotFound
	}
	var e struct {
		Response struct {
			Status int
			Body   any
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&e); err != nil {
		t.Errorf("example of %s: %v", operation, err)
	}
	return e.Response.Body, e.Response.Status
}

// exampleObject returns an example's response with some values changed.
func exampleObject(t *testing.T, operation string, changed map[string]any) map[string]any {
	t.Helper()
	body, _ := exampleOf(t, operation)
	o, ok := body.(map[string]any)
	if !ok {
		t.Fatalf("%s returns no object", operation)
	}
	maps.Copy(o, changed)
	return o
}

// name finds the operation of an internal call. A call that the operator is not allowed to make fails the test.
func (p *platform) name(c *call) {
	for id, op := range parts().operations {
		params, ok := matches(op.Path, c.Path)
		if op.Service != c.Service || op.Method != c.Method || !ok {
			continue
		}
		c.ID, c.Params = id, params
		for _, scope := range op.Scopes {
			if !c.Who.Has(scope) {
				p.t.Errorf("%s is called without %s", id, scope)
			}
		}
	}
	if c.ID == "" {
		p.t.Errorf("%s has no internal call %s %s", c.Service, c.Method, c.Path)
	}
}

// matches reports whether a path matches a template such as /a/{id}, and returns the values of its parameters.
func matches(template, path string) (params []string, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, segment := range want {
		switch {
		case strings.HasPrefix(segment, "{") && got[i] != "":
			params = append(params, got[i])
		case segment != got[i]:
			return nil, false
		}
	}
	return params, true
}

// internal responds to the calls that are not in the public contract.
func (p *platform) internal(c call) response {
	if c.ID == "lookupSession" {
		var in internalapi.SessionLookup
		if err := json.Unmarshal(c.Body, &in); err != nil {
			p.t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if s := p.sessions[in.Hash]; s != nil {
			now := *s
			return response{http.StatusOK, &now}
		}
		return refusal(http.StatusNotFound, "not_found", nil)(c)
	}
	if slices.Contains(ofSessions, c.ID) {
		return p.draft(c)
	}
	body, ok := internalExample(c.ID)
	if !ok {
		p.t.Errorf("no example of %s", c.ID)
	}
	if c.ID == "getSentDelivery" {
		body.(map[string]any)["delivery"] = failedDelivery(c.Params[0], c.Params[1])
	}
	if c.ID == "listViews" && c.Query.Get("list") != "bookings" {
		body = map[string]any{"data": []any{}}
	}
	status := http.StatusOK
	switch {
	case body == nil:
		status = http.StatusNoContent
	case c.Method == http.MethodPost && parts().operations[c.ID].Secret:
		status = http.StatusCreated
	}
	return response{status, body}
}

// draft stores or returns the input of a form.
func (p *platform) draft(c call) response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ID == "lookupDraft" {
		d, ok := p.drafts[c.Query.Get("operator")+c.Params[0]]
		if !ok {
			return refusal(http.StatusNotFound, "not_found", nil)(c)
		}
		return response{http.StatusOK, internalapi.Draft{Page: d.Page, Values: d.Values}}
	}
	var d internalapi.NewDraft
	if err := json.Unmarshal(c.Body, &d); err != nil {
		p.t.Error(err)
	}
	operator, ok := strings.CutPrefix(d.Proof, "proof-")
	switch {
	case !ok:
		return refusal(http.StatusNotFound, "not_found", nil)(c)
	case len(c.Body) > 256<<10:
		return refusal(http.StatusRequestEntityTooLarge, "request_too_large", nil)(c)
	}
	p.drafts[operator+c.Params[0]] = d
	return response{http.StatusNoContent, nil}
}

// calendarBooking returns a booking of today in the format of a calendar.
func calendarBooking() map[string]any {
	return map[string]any{
		"id": "bk_01k00000000000000000000009", "number": "B-000009", "status": "confirmed", "payment_status": "unpaid", "customer_id": "cu_01k00000000000000000000001", "customer_name": "Grace Hopper",
		"unit_id": "un_01k00000000000000000000001", "event_local_date": "2027-03-01", "starts_at": "2027-03-01T14:00:00Z", "ends_at": "2027-03-01T16:00:00Z",
		"event_start_time": "09:00", "event_end_time": "11:00", "hold_expires_at": nil, "currency": "USD", "deposit_amount": 2000, "version": 3,
	}
}
