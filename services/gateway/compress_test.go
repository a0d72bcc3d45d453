package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast.dev/libs/httpx"
)

// large is a body that is worth compressing.
var large = `{"data":[` + strings.TrimSuffix(strings.Repeat(`{"id":"cu_1","object":"customer","name":"Ada Lovelace"},`, 40), ",") + `]}`

// responds makes the service respond with a body and headers.
func (w *world) responds(contentType, body string, headers ...string) {
	w.service.handle = func(out http.ResponseWriter, _ *http.Request) bool {
		out.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			out.Header().Set(headers[i], headers[i+1])
		}
		_, _ = io.WriteString(out, body)
		return true
	}
}

// plain returns the body of a response without its content coding.
func (a *response) plain(t *testing.T) string {
	t.Helper()
	var r io.Reader = strings.NewReader(a.body)
	var err error
	switch coding := a.Header.Get("Content-Encoding"); coding {
	case "":
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r)
	default:
		t.Fatalf("content coding %q", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (g *gateway) fetch(t *testing.T, method, path, body string, edits ...edit) *response {
	t.Helper()
	a, err := g.raw(method, path, body, edits...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A large text is compressed in the coding that the client prefers. Its length and Vary describe the compressed
// response. The entity tag stays the version of the object.
func TestCompressedResponses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, key := w.start(t), w.identity.newKey()
	for name, tc := range map[string]struct {
		contentType, body, accepted, cacheControl string
		coding                                    string
		vary                                      bool
	}{
		"gzip":               {"application/json", large, "gzip", "", "gzip", true},
		"zstd":               {"application/json", large, "gzip, zstd", "", "zstd", true},
		"by weight":          {"application/json; charset=utf-8", large, "gzip;q=1, zstd;q=0.1", "", "gzip", true},
		"not accepted":       {"application/json", large, "gzip;q=0, br", "", "", true},
		"nothing accepted":   {"application/json", large, "identity", "", "", true},
		"no-transform":       {"application/json", large, "gzip", "private, no-transform", "", false},
		"a small one":        {"application/json", large[:1024], "gzip", "", "", false},
		"the smallest":       {"application/json", large[:1025], "gzip", "", "gzip", true},
		"a document":         {"application/pdf", large, "gzip", "", "", false},
		"random bytes":       {"text/plain", random(4096), "gzip, zstd", "", "", true},
		"a calendar":         {"text/calendar; charset=utf-8", large, "gzip", "private, no-cache", "gzip", true},
		"the largest, 2 MiB": {"application/json", strings.Repeat(large, 1000), "zstd", "", "zstd", true},
	} {
		w.responds(tc.contentType, tc.body, "ETag", `"7"`, "Cache-Control", tc.cacheControl)
		a := g.fetch(t, "GET", oneCu, "", bearer(key), header("Accept-Encoding", tc.accepted))
		if a.plain(t) != tc.body || a.Header.Get("Content-Encoding") != tc.coding || a.Header.Get("Content-Length") != strconv.Itoa(len(a.body)) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(a.body), len(tc.body), a.Header)
		}
		if a.Header.Get("ETag") != `"7"` || strings.Contains(strings.Join(a.Header["Vary"], ","), "Accept-Encoding") != tc.vary {
			t.Errorf("%s: ETag %s, Vary %q", name, a.Header.Get("ETag"), a.Header["Vary"])
		}
		if tc.coding != "" && len(a.body) > len(tc.body)/2 {
			t.Errorf("%s: %d bytes of %d", name, len(a.body), len(tc.body))
		}
	}
}

// random returns bytes that do not shrink.
func random(n int) string {
	out := make([]byte, n)
	x := uint32(1)
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = byte(x)
	}
	return string(out)
}

// The entity tag of a compressed response works as If-Match: the service receives the version.
func TestIfMatchOfACompressedResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, key := w.start(t), w.identity.newKey()
	var received []string
	w.service.handle = func(out http.ResponseWriter, r *http.Request) bool {
		received = r.Header["If-Match"]
		out.Header().Set("Content-Type", "application/json")
		out.Header().Set("ETag", `"3"`)
		_, _ = io.WriteString(out, large)
		return true
	}
	for _, coding := range []string{"gzip", "zstd"} {
		etag := g.fetch(t, "GET", oneCu, "", bearer(key), header("Accept-Encoding", coding)).Header.Get("ETag")
		g.fetch(t, "PATCH", oneCu, `{"phone":"1"}`, bearer(key), header("If-Match", etag))
		if fmt.Sprint(received) != `["3"]` {
			t.Errorf("%s arrives as %q", etag, received)
		}
	}
	for _, given := range []string{`"3"`, `*`, `W/"3"`, `"gzip"`} {
		g.fetch(t, "PATCH", oneCu, `{"phone":"1"}`, bearer(key), header("If-Match", given))
		if len(received) != 1 || received[0] != given {
			t.Errorf("%s arrives as %q", given, received)
		}
	}
}

// A response is stored uncompressed: replays to clients that accept other codings are the same.
func TestReplaysInOtherCodings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, key := w.start(t), w.identity.newKey()
	w.service.handle = func(out http.ResponseWriter, _ *http.Request) bool {
		h := out.Header()
		h.Set("Content-Type", "application/json")
		h.Set(httpx.HeaderIdempotencyExpires, strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
		out.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(out, large)
		return true
	}
	send := func(coding string) *response {
		return g.fetch(t, "POST", "/api/v1/services", `{"name":"Tour"}`, bearer(key), header("Idempotency-Key", "k"), header("Accept-Encoding", coding))
	}
	if first := send("gzip"); first.plain(t) != large || first.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %s", first.Header, first.body)
	}
	eventually(t, "the response is replayed", func() bool { return send("identity").Header.Get("Idempotent-Replayed") == "true" })
	for _, coding := range []string{"zstd", "identity", "gzip"} {
		if a := send(coding); a.plain(t) != large || a.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %v", coding, a.Header)
		}
	}
}

// At most COMPRESSIONS responses are compressed at the same time. Others are sent uncompressed, without waiting.
func TestCompressionsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.identity.newKey()
	w.responds("application/json", strings.Repeat(large, 400), "ETag", `"7"`)
	codings := func(most int) (compressed, plain int) {
		g := w.start(t, func(c *Config) { c.Compressions = most })
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 24 {
			wg.Go(func() {
				a, err := g.raw("GET", oneCu, "", bearer(key), header("Accept-Encoding", "gzip"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				switch a.Header.Get("Content-Encoding") {
				case "gzip":
					compressed++
				case "":
					if plain++; a.Header.Get("ETag") != `"7"` {
						t.Errorf("uncompressed with %s", a.Header.Get("ETag"))
					}
				}
			})
		}
		wg.Wait()
		return compressed, plain
	}
	if compressed, plain := codings(0); compressed != 0 || plain != 24 {
		t.Errorf("with 0: %d compressed, %d not", compressed, plain)
	}
	if compressed, plain := codings(64); compressed != 24 || plain != 0 {
		t.Errorf("with 64: %d compressed, %d not", compressed, plain)
	}
	if err := (&Config{Compressions: 65}).check(); err == nil {
		t.Error("65 is accepted")
	}
}

// Events are forwarded as they are, so that each one arrives at once.
func TestStreamsAreNotCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, key := w.start(t), w.identity.newKey()
	w.responds("text/event-stream", "data: "+large+"\n\n")
	a := g.fetch(t, "GET", "/api/v1/events/stream", "", bearer(key), header("Accept-Encoding", "gzip, zstd"))
	if a.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(a.body, "data: ") {
		t.Errorf("%v %.40s", a.Header, a.body)
	}
}

// The gateway does not compress pages of the console, which can contain secrets together with input of others.
func TestPagesOfOthersAreNotCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, w.console(t, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(out, strings.Repeat("<p>page</p>", 500))
	}))
	a := g.fetch(t, "GET", "/admin", "", header("Accept-Encoding", "gzip"))
	if a.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(a.body, "<p>page") {
		t.Errorf("%v %.40s", a.Header, a.body)
	}
}
