package tools

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	holdfast "holdfast.dev/sdks/go"
)

// oneTenant responds to each request with the same tenant.
type oneTenant struct{}

func (oneTenant) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"object":"tenant","name":"Acme","mode":"test","timezone":"Europe/Berlin","currency":"EUR"}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestServersAreSmall checks that a server takes at most 64 KiB, because a process keeps one for each credential. It does not run in
// parallel, because it measures the memory of the process.
func TestServersAreSmall(t *testing.T) {
	const servers, most = 100, 64 << 10
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	start := func() *mcp.Server {
		client, err := holdfast.New(holdfast.WithAPIKey("k"), holdfast.WithBaseURL("https://x.test/api/v1"), holdfast.WithHTTPClient(&http.Client{Transport: oneTenant{}}))
		if err != nil {
			t.Fatal(err)
		}
		server, err := New(t.Context(), Config{Client: client, Writes: true})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	all := []*mcp.Server{start()} // what all share
	before := heap()
	for range servers {
		all = append(all, start())
	}
	size := (heap() - before) / servers
	t.Logf("%d bytes", size)
	if size > most {
		t.Errorf("a server takes %d bytes, more than %d", size, most)
	}
	runtime.KeepAlive(all)
}
