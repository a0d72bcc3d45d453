package holdfast

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// script is a transport that returns one response after the other, and repeats the last one.
type script struct {
	mu    sync.Mutex
	steps []step
	seen  []seen
}

// step returns the response to a request, or an error of the connection.
type step func(*http.Request) (*http.Response, error)

// seen is a request that was sent.
type seen struct {
	*http.Request

	body string
}

// RoundTrip returns the next response.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.mu.Lock()
	next := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.seen = append(s.seen, seen{r, body})
	s.mu.Unlock()
	return next(r)
}

// requests returns the requests so far.
func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.seen...)
}

// respond returns a step that responds with a status, a body, and pairs of headers.
func respond(status int, body string, headers ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		response := w.Result()
		response.Request = r
		return response, nil
	}
}

var errCut = errors.New("connection reset by peer")

// cut is a connection that fails after the request was sent.
func cut(*http.Request) (*http.Response, error) { return nil, errCut }

// hang is a platform that does not respond.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// failure is the body of an error with a code.
func failure(code string) string {
	return `{"error":{"type":"api_error","code":"` + code + `","message":"It failed.","request_id":"req_1"}}`
}

// booking is the body of a booking.
const booking = `{"id":"bk_1","object":"booking","number":"B-000001","status":"pending","total_amount":{"amount":9000,"currency":"USD"},"notes":null,"a_new_field":1}`

// newClient returns a client whose requests get the responses of steps.
func newClient(t *testing.T, steps ...step) (*Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	c, err := New(WithAPIKey("svc_test_x"), WithBaseURL("https://holdfast.test/api/v1/"), WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// keys returns the Idempotency-Keys of requests.
func keys(requests []seen) string {
	var all []string
	for _, r := range requests {
		all = append(all, r.Header.Get("Idempotency-Key"))
	}
	return strings.Join(all, " ")
}
