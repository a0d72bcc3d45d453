package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
)

// downloads makes the service send lists as CSV.
func (w *world) downloads(t testing.TB) *source {
	s := w.service.streaming(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(out http.ResponseWriter, r *http.Request) bool {
			return s.serve(&csvWriter{out}, r)
		}
	})
	return s
}

// csvWriter turns the responses of a source into CSV.
type csvWriter struct{ http.ResponseWriter }

func (w *csvWriter) WriteHeader(status int) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.ResponseWriter.WriteHeader(status)
}
func (w *csvWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func to(path string) edit {
	return func(r *http.Request) { r.URL.Path = path }
}

// A list as CSV arrives while it is sent, with the headers of every response.
func TestCSVIsForwardedAsItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.downloads(t)
	l := g.listen(t, to(customers), bearer(w.identity.newKey()), header("Accept", "text/csv;q=0.9, */*;q=0.1"))
	service.sends(t, "id\r\n")
	l.hears(t, "id\r\n")
	service.sends(t, "cu_1\r\n")
	l.hears(t, "cu_1\r\n")
	close(service.events)
	if err := l.ends(t); err != nil {
		t.Error(err)
	}
	if got := w.service.last.Header.Get("Accept"); got != "text/csv" {
		t.Errorf("the service got the request %q", got)
	}
	if l.Header.Get("Content-Type") != "text/csv; charset=utf-8" || l.Header.Get("X-Request-Id") == "" {
		t.Errorf("headers %v", l.Header)
	}
	g.checker.Check(t, l.Request, l.Response, []byte("id\r\ncu_1\r\n"))
	eventually(t, "its line", func() bool { return strings.Contains(lastLine(g), `"/customers.csv"`) })
}

// Only a CSV request to an operation with CSV is streamed. All other responses are forwarded as a whole, and the service receives
// no Accept header.
func TestOtherResponsesAreForwardedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == oneCu {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":[],"has_more":false,"next_cursor":null}`)
			return true
		}
	})
	for path, accept := range map[string]string{
		customers: "application/json", customers + "?": "*/*", customers + "?limit=1": "text/csv;q=0.1, application/json", oneCu: "text/csv",
	} {
		want(t, g.send(t, "GET", path, "", bearer(w.identity.newKey()), header("Accept", accept)), 200, "")
		if got := w.service.last.Header.Get("Accept"); got != "" {
			t.Errorf("%s, Accept %s: the service got the request %q", path, accept, got)
		}
	}
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Operations() {
		if op.CSV != nil && (op.Method != "GET" || op.Stream) {
			t.Errorf("%s cannot have CSV", op.ID)
		}
	}
}

// An export is always a download, regardless of the Accept header. It arrives while it is sent, counts as a download, and is
// aborted when the service aborts it.
func TestExportsAreDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	key := w.identity.newKey()
	request := []edit{to(oneCu + "/export"), bearer(key)}
	first := g.listen(t, request...)
	service.sends(t, "{\n")
	first.hears(t, "{\n")
	g.listen(t, request...)
	want(t, g.send(t, "GET", oneCu+"/export", "", request[1:]...), 429, "rate_limited")
	service.sends(t, "")
	if err := first.ends(t); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the download ended with %v", err)
	}
	want(t, g.send(t, "GET", oneCu+"/export", "", bearer(w.identity.newKey("read:customers"))), 403, "insufficient_scope")
}

func TestABrokenDownloadIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.downloads(t)
	l := g.listen(t, to(customers), bearer(w.identity.newKey()), header("Accept", "text/csv"))
	service.sends(t, "id\r\n")
	l.hears(t, "id\r\n")
	service.sends(t, "")
	if err := l.ends(t); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the download ended with %v", err)
	}
}

// A stop ends event streams normally, but aborts downloads, because half a list must not look complete.
func TestAStopCutsDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.downloads(t)
	l := g.listen(t, to(customers), bearer(w.identity.newKey()), header("Accept", "text/csv"))
	service.sends(t, "id\r\n")
	l.hears(t, "id\r\n")
	g.server.Pipeline.Downloads.Stop()
	if err := l.ends(t); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the download ended with %v", err)
	}
	want(t, g.send(t, "GET", customers, "", bearer(w.identity.newKey()), header("Accept", "text/csv")), 503, "unavailable")
}

func TestDownloadsOfOneCredentialAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.downloads(t)
	key := w.identity.newKey()
	request := []edit{to(customers), bearer(key), header("Accept", "text/csv")}
	first := g.listen(t, request...)
	g.listen(t, request...)
	a := g.send(t, "GET", customers, "", request[1:]...)
	want(t, a, 429, "rate_limited")
	if a.Header.Get("Retry-After") != "5" || !strings.Contains(a.body, "2 open downloads") || a.Header.Get("RateLimit-Remaining") != "597" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	first.leave()
	service.ends(t)
	eventually(t, "a place is free", func() bool { return g.listen(t, request...).StatusCode == http.StatusOK })
}

// An error of the service is forwarded unchanged.
func TestRefusedDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(422)
			_, _ = io.WriteString(w, `{"message":"limit: No.","errors":{"limit":["No."]},"error":{"type":"validation_error","code":"invalid_request","message":"limit: No.","param":"limit","doc_url":"https://booking.test/docs/errors#invalid_request","request_id":"`+r.Header.Get("X-Request-Id")+`"}}`)
			return true
		}
	})
	want(t, g.send(t, "GET", customers+"?limit=1", "", bearer(w.identity.newKey()), header("Accept", "text/csv")), 422, "invalid_request")
	want(t, g.send(t, "GET", customers, "", header("Accept", "text/csv")), 401, "missing_credential")
	want(t, g.send(t, "GET", customers, "", bearer(w.identity.newKey("write:customers")), header("Accept", "text/csv")), 403, "insufficient_scope")
}

// A client that reads nothing is disconnected after the time-out of one write.
func TestAStalledDownloadIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.StreamWriteTimeout = 300 * time.Millisecond })
	service := w.service.flooding()
	g.listen(t, to(customers), bearer(w.identity.newKey()), header("Accept", "text/csv"))
	select {
	case <-service.ended:
	case <-time.After(10 * time.Second):
		t.Error("the service is still sending")
	}
}
