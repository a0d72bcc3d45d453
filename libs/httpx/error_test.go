package httpx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
)

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func timeNow() time.Time { return time.Now() }

func body(t *testing.T, res *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	fields := func(n int) error {
		list := []apperr.FieldError{{Field: "z<b>", Message: "First."}}
		for i := 1; i < n; i++ {
			list = append(list, apperr.FieldError{Field: fmt.Sprintf("a%d", i%2), Message: fmt.Sprintf("M%d.", i)})
		}
		return apperr.Fields(list)
	}
	for _, tc := range []struct {
		err    error
		status int
		body   string
	}{
		{errors.New("a <cause>"), 500, `{"error":{"type":"api_error","code":"internal_error","message":"Something went wrong on our side. It is safe to retry with backoff.","doc_url":"https://booking.test/docs/errors#internal_error","request_id":"req_1"}}`},
		{fmt.Errorf("wrapped: %w", httpx.ErrNotFound), 404, `{"error":{"type":"invalid_request_error","code":"not_found","message":"This path does not exist.","doc_url":"https://booking.test/docs/errors#not_found","request_id":"req_1"}}`},
		{apperr.New(apperr.Conflict, "slot_unavailable", "No.").WithExtra("seats_available", 0), 409, `{"error":{"type":"invalid_request_error","code":"slot_unavailable","message":"No.","doc_url":"https://booking.test/docs/errors#slot_unavailable","request_id":"req_1","seats_available":0}}`},
		{fields(1), 422, `{"message":"z<b>: First.","errors":{"z<b>":["First."]},"error":{"type":"validation_error","code":"invalid_request","message":"z<b>: First.","param":"z<b>","doc_url":"https://booking.test/docs/errors#invalid_request","request_id":"req_1"}}`},
		{fields(2), 422, `{"message":"z<b>: First. (and 1 more error)","errors":{"z<b>":["First."],"a1":["M1."]},"error":{"type":"validation_error","code":"invalid_request","message":"z<b>: First.","param":"z<b>","doc_url":"https://booking.test/docs/errors#invalid_request","request_id":"req_1"}}`},
		{fields(4), 422, `{"message":"z<b>: First. (and 3 more errors)","errors":{"z<b>":["First."],"a1":["M1.","M3."],"a0":["M2."]},"error":{"type":"validation_error","code":"invalid_request","message":"z<b>: First.","param":"z<b>","doc_url":"https://booking.test/docs/errors#invalid_request","request_id":"req_1"}}`},
		{apperr.New(apperr.Invalid, "booking_not_payable", "No."), 422, `{"message":"No.","errors":{"body":["No."]},"error":{"type":"validation_error","code":"booking_not_payable","message":"No.","param":"body","doc_url":"https://booking.test/docs/errors#booking_not_payable","request_id":"req_1"}}`},
	} {
		rec := httptest.NewRecorder()
		httpx.WriteError(rec, "https://booking.test", "req_1", tc.err)
		if rec.Code != tc.status || rec.Body.String() != tc.body {
			t.Errorf("%v: %d\n got %s\nwant %s", tc.err, rec.Code, rec.Body, tc.body)
		}
		if h := rec.Header(); h.Get("Content-Type") != "application/json" || h.Get("X-Request-Id") != "req_1" {
			t.Errorf("%v: %v", tc.err, h)
		}
	}
}

func TestErrorHeaders(t *testing.T) {
	t.Parallel()
	scope := apperr.New(apperr.Forbidden, "insufficient_scope", "No.").WithHeader("WWW-Authenticate", `Bearer scope="a"`)
	for _, tc := range []struct {
		err           error
		header, value string
	}{
		{apperr.New(apperr.Unauthenticated, "missing_credential", "No."), "WWW-Authenticate", `Bearer realm="holdfast"`},
		{apperr.New(apperr.Unauthenticated, "revoked_credential", "No."), "WWW-Authenticate", `Bearer realm="holdfast", error="invalid_token"`},
		{scope, "WWW-Authenticate", `Bearer scope="a"`},
		{apperr.New(apperr.RateLimited, "rate_limited", "No.").WithRetryAfter(1500 * time.Millisecond), "Retry-After", "2"},
		{apperr.New(apperr.RateLimited, "rate_limited", "No.").WithRetryAfter(time.Nanosecond), "Retry-After", "1"},
		{apperr.ErrUnavailable, "Retry-After", "1"},
		{apperr.ErrTimeout, "Retry-After", ""},
		{apperr.ErrTimeout, "Service-Should-Retry", ""},
		{apperr.ErrInProgress, "Service-Should-Retry", ""},
		{apperr.ErrMismatch, "Service-Should-Retry", "false"},
		{scope, "Service-Should-Retry", "false"},
		{apperr.New(apperr.NotFound, "view_not_found", "No."), "Service-Should-Retry", "false"},
		{apperr.New(apperr.BadGateway, "payment_intent_failed", "No."), "Service-Should-Retry", ""},
		{apperr.New(apperr.BadGateway, "payment_intent_failed", "No.").WithoutRetry(), "Service-Should-Retry", "false"},
		{apperr.New(apperr.BadGateway, "a_code_of_a_later_version", "No."), "Service-Should-Retry", ""},
		{httpx.ErrMethod.WithHeader("Allow", "GET"), "Allow", "GET"},
	} {
		rec := httptest.NewRecorder()
		httpx.WriteError(rec, "https://booking.test", "req_1", tc.err)
		if got := rec.Header().Get(tc.header); got != tc.value {
			t.Errorf("%v: %s is %q, want %q", tc.err, tc.header, got, tc.value)
		}
	}
}

// Each kind has its own status and type. Only the internal kind is a 500.
func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[apperr.Kind]string{
		apperr.Internal: "500 api_error", apperr.BadRequest: "400 invalid_request_error", apperr.Unauthenticated: "401 authentication_error",
		apperr.Forbidden: "403 permission_error", apperr.NotFound: "404 invalid_request_error", apperr.MethodNotAllowed: "405 invalid_request_error",
		apperr.Conflict: "409 invalid_request_error", apperr.PreconditionFailed: "412 invalid_request_error", apperr.TooLarge: "413 invalid_request_error",
		apperr.Invalid: "422 validation_error", apperr.RateLimited: "429 rate_limit_error", apperr.BadGateway: "502 api_error",
		apperr.Unavailable: "503 api_error", apperr.Timeout: "504 api_error", apperr.Timeout + 1: "500 api_error",
	} {
		rec := httptest.NewRecorder()
		httpx.WriteError(rec, "https://booking.test", "r", apperr.New(kind, "c", "m"))
		var e struct{ Error struct{ Type string } }
		decode(t, rec.Body.Bytes(), &e)
		if got := fmt.Sprintf("%d %s", httpx.StatusOf(kind), e.Error.Type); got != want || rec.Code != httpx.StatusOf(kind) {
			t.Errorf("kind %d: %s, want %s", kind, got, want)
		}
	}
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
}

func TestListBody(t *testing.T) {
	t.Parallel()
	rows := []json.RawMessage{json.RawMessage(`{"a":1}`), json.RawMessage(`{}`)}
	for _, tc := range []struct {
		rows []json.RawMessage
		more bool
		want string
	}{
		{rows, true, `{"data":[{"a":1},{}],"has_more":true,"next_cursor":"c<\""}`},
		{rows, false, `{"data":[{"a":1},{}],"has_more":false,"next_cursor":null}`},
		{nil, false, `{"data":[],"has_more":false,"next_cursor":null}`},
	} {
		if got := string(httpx.ListBody(tc.rows, tc.more, `c<"`)); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
