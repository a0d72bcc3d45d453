package holdfast_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

func TestMain(m *testing.M) {
	server := httptest.NewServer(platform())
	for name, value := range map[string]string{
		"HOLDFAST_BASE_URL": server.URL + "/api/v1", "HOLDFAST_API_KEY": "svc_test_example", "HOLDFAST_TOKEN_URL": server.URL + "/oauth/token", "WEBHOOK_SECRET": "whsec_example",
	} {
		if err := os.Setenv(name, value); err != nil {
			log.Fatal(err)
		}
	}
	var err error
	if client, err = holdfast.New(); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	server.CloseClientConnections()
	server.Close()
	os.Exit(code)
}

// TestReadme checks that each snippet of the README is the body of an example. The examples run as tests.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "example_test.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]bool{}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			body := string(source[files.Position(f.Body.Lbrace).Offset+2 : files.Position(f.Body.Rbrace).Offset])
			body, _, _ = strings.Cut(body, "\t// Output:")
			body = strings.TrimSuffix(body, "\tdeliver()\n")
			bodies[strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n")] = true
		}
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(snippets) != 10 || len(bodies) != len(snippets) {
		t.Errorf("%d snippets and %d examples, want 10", len(snippets), len(bodies))
	}
	for _, snippet := range snippets {
		if !bodies[snippet[1]] {
			t.Errorf("no example has the body\n%s", snippet[1])
		}
	}
}

// deliver sends a delivery to the handler of the example, and prints the status of the response.
func deliver() {
	body, err := os.ReadFile("testdata/delivery.json")
	if err != nil {
		log.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(os.Getenv("WEBHOOK_SECRET")))
	_, _ = fmt.Fprintf(mac, "%s.%s", at, body)
	r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(string(body)))
	r.Header.Set("Service-Signature", "t="+at+",v1="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, r)
	fmt.Println(w.Code)
}

// example returns a booking of the platform.
func example(n string) string {
	return `{"id":"bk_` + n + `","object":"booking","number":"B-00000` + n + `","status":"pending","version":` + n + `,"notes":null,"guest_count":4,"customer":{"name":"Ada Lovelace"}}`
}

// platform returns a server with the responses that the examples need.
func platform() http.Handler {
	mux := http.NewServeMux()
	respond := func(pattern string, status int, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	respond("POST /api/v1/customers", 201, `{"id":"cu_1","object":"customer"}`)
	respond("GET /api/v1/availability", 200, `{"data":[{"date":"2030-06-02","status":"sold_out"},{"date":"2030-06-03","status":"available"}],"has_more":false,"next_cursor":null}`)
	respond("GET /api/v1/bookings/{id}", 200, example("1"))
	respond("GET /api/v1/events", 200, `{"data":[{"id":"evt_0","type":"lead.created"}],"has_more":true,"next_cursor":"c"}`)
	respond("POST /oauth/token", 200, `{"access_token":"at_2","refresh_token":"rt_2","expires_in":3600}`)
	mux.HandleFunc("GET /api/v1/invoices/{id}/pdf", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = io.WriteString(w, "%PDF")
	})
	mux.HandleFunc("GET /api/v1/me", func(w http.ResponseWriter, r *http.Request) {
		kind := map[bool]string{true: "oauth", false: "api_key"}[r.Header.Get("Authorization") == "Bearer at_2"]
		_, _ = io.WriteString(w, `{"type":"`+kind+`","mode":"test"}`)
	})
	mux.HandleFunc("POST /api/v1/bookings", createBooking())
	mux.HandleFunc("PATCH /api/v1/bookings/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("If-Match") != `"1"` || string(body) != `{"guest_count":4,"notes":null}` {
			w.WriteHeader(http.StatusPreconditionFailed)
			body = []byte(`{"error":{"code":"version_mismatch"}}`)
			_, _ = w.Write(body)
			return
		}
		_, _ = io.WriteString(w, example("1"))
	})
	mux.HandleFunc("GET /api/v1/bookings", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			_, _ = io.WriteString(w, `{"data":[`+example("3")+`,`+example("2")+`],"has_more":true,"next_cursor":"c"}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[`+example("1")+`],"has_more":false,"next_cursor":null}`)
	})
	mux.HandleFunc("GET /api/v1/events/stream", streamEvents)
	return mux
}

// createBooking returns a handler that refuses one day, and repeats the response to a key.
func createBooking() http.HandlerFunc {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "2030-06-02") {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"code":"slot_unavailable","message":"Another booking holds the unit."}}`)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if key := r.Header.Get("Idempotency-Key"); seen[key] {
			w.Header().Set("Idempotent-Replayed", "true")
		} else {
			seen[key] = true
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, example(map[bool]string{true: "3", false: "1"}[strings.Contains(string(body), "2030-06-03")]))
	}
}

// streamEvents sends one event, and the next one only to a client that continues after it.
func streamEvents(w http.ResponseWriter, r *http.Request) {
	event := map[string]string{
		"evt_0": "id: evt_1\ndata: {\"id\":\"evt_1\",\"type\":\"booking.created\",\"data\":{\"object\":" + example("2") + "}}\n\n",
		"evt_1": "id: evt_2\ndata: {\"id\":\"evt_2\",\"type\":\"booking.cancelled\",\"data\":{\"object\":" + example("1") + "}}\n\n",
	}[r.Header.Get("Last-Event-ID")]
	_, _ = io.WriteString(w, "retry: 10\n\n"+event)
}
