package e2e

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileName matches a Go file that a page names.
var fileName = regexp.MustCompile("`([a-z_/]+\\.go)`")

// TestTablesOfFiles checks the table "Create a booking" of docs/architecture.md, and the files that are the same for all tables: one
// POST /bookings runs code in each of them.
func TestTablesOfFiles(t *testing.T) {
	onMachine(t)
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## Five paths, file by file")
	_, text, _ = strings.Cut(text, "Every public request")
	text, _, _ = strings.Cut(text, "### Accept a quote")
	named := map[string]bool{}
	folder := "services/gateway/internal"
	for _, m := range fileName.FindAllStringSubmatch(text, -1) {
		file := m[1]
		switch {
		case strings.HasPrefix(file, "services/"):
			folder = strings.Join(strings.Split(file, "/")[:3], "/")
		case file == "api/api.go": // of the service
			file = "services/bookings/internal/" + file
		case !strings.HasPrefix(file, "libs/"):
			file = path.Join(folder, file)
		}
		named[file] = true
	}
	ran := coverage(t, root)
	for file := range named {
		if !ran[file] {
			t.Errorf("POST /bookings runs no code of %s", file)
		}
	}
	if len(named) < 18 {
		t.Errorf("the page names only %d files", len(named))
	}
}

// coverage sends a POST /bookings to processes that record what they run, and returns the files.
func coverage(t *testing.T, root string) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-cover", "-coverpkg=holdfast.dev/...", "-o", dir+"/", "./services/bookings", "./services/gateway")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	c := shared.as(t, "DEMO_TEST_KEY")
	customer := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`).id(t)
	bookings := newReplica(t, "bookings", filepath.Join(dir, "bookings"), "GOCOVERDIR="+data)
	gateway := newReplica(t, "gateway", filepath.Join(dir, "gateway"), "GOCOVERDIR="+data, "UPSTREAM_BOOKINGS_URL=http://"+bookings.address)
	for _, r := range []*replica{bookings, gateway} {
		r.start(t, shared)
		defer r.stop()
	}
	base, err := url.Parse(c.base)
	if err != nil {
		t.Fatal(err)
	}
	base.Host = gateway.address
	covered := &client{base: base.String(), key: c.key, checker: c.checker}
	if a := covered.do(t, http.MethodPost, "/bookings", pricedBooking(t, c, customer), unique("coverage")); a.Status != http.StatusCreated {
		t.Fatalf("POST /bookings: %d %s", a.Status, a.Body)
	}
	gateway.stop()
	bookings.stop() // writes what it ran
	out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "textfmt", "-i", data, "-o", filepath.Join(dir, "profile")).CombinedOutput()
	if err != nil {
		t.Fatalf("covdata: %v\n%s", err, out)
	}
	profile, err := os.ReadFile(filepath.Join(dir, "profile"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for line := range strings.Lines(string(profile)) {
		if file, _, ok := strings.Cut(line, ":"); ok && !strings.HasSuffix(line, " 0\n") {
			ran[strings.TrimPrefix(file, "holdfast.dev/")] = true
		}
	}
	return ran
}
