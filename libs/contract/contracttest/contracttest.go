// Package contracttest checks the responses of API tests against the contract, strictly: a status, header or property that is not
// declared fails the test, and so do properties that are not in the contract's order. It also records which responses were never
// seen.
package contracttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto"
)

// Checker checks responses. It is safe for parallel tests.
type Checker struct {
	service   bool // the responses come from a service, not from the gateway
	contract  *contract.Contract
	responses *responses
	mu        sync.Mutex
	seen      map[string]map[int]int
}

// bases are the paths under which the API is served.
var bases = []string{"/platform/v1", "/api/v1", "/v1"}

// gatewayHeaders are added to every authenticated response by the gateway; errors need not declare them.
var gatewayHeaders = map[string]string{
	"X-Service-Scope": "read:bookings", "RateLimit-Limit": "600", "RateLimit-Remaining": "599", "RateLimit-Reset": "60",
	"RateLimit": `"default";r=599;t=60`, "RateLimit-Policy": `"default";q=600;w=60`,
}

// undeclared are headers that belong to HTTP or to the calls between gateway and service, not to the contract.
var undeclared = []string{
	"content-type", "content-length", "date", "cache-control", "connection", "allow", "strict-transport-security", "x-content-type-options",
	"vary", "access-control-allow-origin", "access-control-expose-headers", "x-internal-idem-expires", "x-internal-idem-cache",
}

var (
	mu       sync.Mutex
	checkers = map[string]*Checker{}
)

// New returns the checker for responses as clients receive them, through the gateway. Within a test binary it returns the same
// checker for the same document, because reading a document takes 0.2 s and coverage spans all tests.
func New(t testing.TB, doc []byte) *Checker {
	t.Helper()
	return open(t, doc, false)
}

// NewService is New for tests that call a service directly: it does not require the headers that only the gateway adds
// to a success (X-Service-Scope, RateLimit…).
func NewService(t testing.TB, doc []byte) *Checker {
	t.Helper()
	return open(t, doc, true)
}

func open(t testing.TB, doc []byte, service bool) *Checker {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	key := fmt.Sprint(service, string(doc))
	if c := checkers[key]; c != nil {
		return c
	}
	c, err := contract.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := readResponses(doc)
	if err != nil {
		t.Fatal(err)
	}
	checkers[key] = &Checker{service: service, contract: c, responses: declared, seen: map[string]map[int]int{}}
	return checkers[key]
}

// Check fails the test unless res, whose body was read into body, is a response that the contract declares for req. If the contract
// does not declare the path or method, Check only checks the error envelope.
func (c *Checker) Check(t testing.TB, req *http.Request, res *http.Response, body []byte) {
	t.Helper()
	for _, problem := range c.problems(req, res, body) {
		t.Errorf("%s %s returned %d against the contract: %s\nbody: %s", req.Method, req.URL.Path, res.StatusCode, problem, body)
	}
}

func (c *Checker) problems(req *http.Request, res *http.Response, body []byte) []string {
	if req.Method == http.MethodHead {
		return c.headProblems(req, res)
	}
	var out []string
	if res.StatusCode >= http.StatusBadRequest {
		out = envelope(res, body)
	}
	op, allow := c.match(req.Method, req)
	if op == nil {
		return append(out, unknown(res, allow)...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[op.ID] == nil {
		c.seen[op.ID] = map[int]int{}
	}
	c.seen[op.ID][res.StatusCode]++
	if !slices.Contains(op.Statuses, res.StatusCode) {
		return append(out, fmt.Sprintf("%s does not declare this status", op.ID))
	}
	if code := errorCode(body); res.StatusCode >= http.StatusBadRequest && code != "" && len(op.Codes) > 0 && !slices.Contains(op.Codes, code) {
		out = append(out, fmt.Sprintf("%s does not declare the code %s (x-error-codes)", op.ID, code))
	}
	out = append(out, c.responses.wrong(op.Method, op.Path, c.response(res), body)...) //nolint:bodyclose // has none
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") && !strings.Contains(strings.Join(req.Header["Accept"], ","), "text/csv") {
		out = append(out, "CSV that the request did not accept")
	}
	if res.StatusCode == http.StatusNoContent && len(body) > 0 {
		out = append(out, "204 with a body")
	}
	return out
}

// match finds the operation for a request's path, under any base, or the methods of the path.
func (c *Checker) match(method string, req *http.Request) (op *contract.Operation, allow []string) {
	path := req.URL.EscapedPath()
	for _, base := range bases {
		if rest, ok := strings.CutPrefix(path, base+"/"); ok {
			path = "/" + rest
			break
		}
	}
	op, _, allow = Match(c.contract, method, path)
	return op, allow
}

// headProblems checks a response to HEAD, whose body the server drops. Only operations without a credential allow HEAD, and treat
// it as GET.
func (c *Checker) headProblems(req *http.Request, res *http.Response) []string {
	op, _ := c.match(http.MethodGet, req)
	switch {
	case res.StatusCode < http.StatusBadRequest && (op == nil || !op.Public || !slices.Contains(op.Statuses, res.StatusCode)):
		return []string{"the operation does not respond to HEAD like this"}
	case res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") == "":
		return []string{"405 without Allow"}
	}
	return nil
}

// response returns res with the headers that the gateway adds to it.
func (c *Checker) response(res *http.Response) *http.Response {
	h := res.Header.Clone()
	if c.service && res.StatusCode < http.StatusBadRequest {
		for k, v := range gatewayHeaders {
			h.Set(k, v)
		}
	}
	return &http.Response{StatusCode: res.StatusCode, Header: h}
}

// unknown checks the response to a path that does not exist.
func unknown(res *http.Response, allow []string) []string {
	switch {
	case allow == nil && res.StatusCode < http.StatusBadRequest:
		return []string{"the path is not in the contract"}
	case allow != nil && res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") == "":
		return []string{"405 without Allow"}
	case allow != nil && res.StatusCode < http.StatusBadRequest:
		return []string{"the method is not in the contract"}
	}
	return nil
}

// envelope checks what a schema cannot express about an error: that its parts are consistent.
func envelope(res *http.Response, body []byte) []string {
	var e struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
		Error   struct {
			Type, Code, Message, Param string
			RequestID                  string `json:"request_id"`
			DocURL                     string `json:"doc_url"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return []string{"the error has no envelope: " + err.Error()}
	}
	var out []string
	if e.Error.Type == "" || e.Error.Code == "" || e.Error.Message == "" {
		out = append(out, "error.type, error.code and error.message are needed")
	}
	if e.Error.RequestID != res.Header.Get("X-Request-Id") {
		out = append(out, "error.request_id differs from X-Request-Id")
	}
	if u, err := url.Parse(e.Error.DocURL); err != nil || !u.IsAbs() || u.Host == "" || u.Path != proto.ErrorsPage || u.Fragment != e.Error.Code {
		out = append(out, "error.doc_url is not the absolute URL of the paragraph of error.code")
	}
	if res.StatusCode == http.StatusUnprocessableEntity && (e.Message == "" || len(e.Errors[e.Error.Param]) == 0) {
		out = append(out, "a 422 needs message, and errors for error.param")
	}
	if field := e.Error.Param + ": "; field != "body: " && res.StatusCode == http.StatusUnprocessableEntity &&
		(!strings.HasPrefix(e.Message, field) || !strings.HasPrefix(e.Error.Message, field)) {
		out = append(out, "the messages of a 422 name their field first")
	}
	if res.StatusCode == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") == "" {
		out = append(out, "401 without WWW-Authenticate")
	}
	return out
}

// errorCode returns error.code of a response, or "" if it has none.
func errorCode(body []byte) string {
	var e struct {
		Error struct{ Code string } `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // envelope reports a response without an envelope
	return e.Error.Code
}

// Uncovered lists "operationId status" for each declared response that no Check received, for the named services or for all.
func (c *Checker) Uncovered(services ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, op := range c.contract.Operations() {
		if len(services) > 0 && !slices.Contains(services, op.Service) {
			continue
		}
		for _, status := range op.Statuses {
			if c.seen[op.ID][status] == 0 {
				out = append(out, fmt.Sprintf("%s %d", op.ID, status))
			}
		}
	}
	return out
}
