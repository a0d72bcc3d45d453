package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/sdks/cli/internal/operations"
)

// lists is a platform whose lists have 250 rows each.
type lists struct {
	mu      sync.Mutex
	refuses string // the path of a list whose second page is refused
	calls   map[string]int
}

// ServeHTTP implements http.Handler.
func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[r.URL.Path]++
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	if from > 0 && r.URL.Path == l.refuses {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"message":"No.","error":{"code":"insufficient_scope","message":"No."}}`)
		return
	}
	if r.URL.Query().Get("limit") != "100" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	var rows []string
	for n := from; n < min(from+100, 250); n++ {
		rows = append(rows, fmt.Sprintf("{\n \"id\": \"%s_%d\",\n \"text\": \"one\\ntwo\"\n}", r.URL.Path, n))
	}
	_, _ = fmt.Fprintf(w, `{"data":[%s],"has_more":%v,"next_cursor":"%d"}`, strings.Join(rows, ","), from < 200, from+100)
}

// exported returns the IDs in the file of a list, one per line.
func exported(t *testing.T, name string) (ids []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row struct{ ID, Text string }
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Text != "one\ntwo" || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("%s: %q, %v", name, line, err)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

// TestExport checks that each list is exported with all of its pages, that a list that fails leaves no file, and that another run continues
// with it and leaves the complete files alone.
func TestExport(t *testing.T) {
	l := &lists{refuses: "/leads", calls: map[string]int{}}
	server := httptest.NewServer(http.StripPrefix("/api/v1", l))
	defer server.Close()
	t.Setenv("HOLDFAST_BASE_URL", server.URL)
	t.Setenv("HOLDFAST_API_KEY", "svc_test_x")
	t.Setenv("HOLDFAST_CONFIG_DIR", t.TempDir())
	folder := filepath.Join(t.TempDir(), "new", "folder")
	a, out := newApp()
	if code := a.Run(t.Context(), []string{"export", "--folder", folder}); code != exitCredential ||
		!strings.Contains(out.String(), "customers.ndjson: 250 rows\n") || !strings.Contains(out.String(), "leads.ndjson: not complete; run the command again") {
		t.Fatalf("%d\n%s", code, out)
	}
	if found, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(found) != 1 || filepath.Base(found[0]) != "customers.ndjson" {
		t.Fatalf("after a failure: %v, %v", found, err)
	}
	l.refuses = ""
	calls := l.calls["/customers"]
	a, out = newApp()
	if code := a.Run(t.Context(), []string{"export", "--folder", folder}); code != 0 || !strings.Contains(out.String(), "customers.ndjson: exists already\n") {
		t.Fatalf("%d\n%s", code, out)
	}
	if calls != 3 || l.calls["/customers"] != calls {
		t.Errorf("customers was called %d and %d times", calls, l.calls["/customers"])
	}
	want := 0
	for _, res := range operations.Resources {
		for _, op := range res.Operations {
			if op.Kind != operations.Page || len(op.PathParams) > 0 {
				continue
			}
			want++
			name := filepath.Join(folder, strings.TrimPrefix(op.Path, "/")+".ndjson")
			rows := exported(t, name)
			if n := len(slices.Compact(slices.Sorted(slices.Values(rows)))); n != 250 || len(rows) != 250 || rows[249] != op.Path+"_249" {
				t.Errorf("%s: %d rows, %d different", op.Path, len(rows), n)
			}
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
	if found, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(found) != want || want < 15 {
		t.Errorf("%d files of %d lists, %v", len(found), want, err)
	}
}
