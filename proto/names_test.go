package proto_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

// allowedNames are the files and folders that may name a service, in addition to its own folder, this folder and the documentation.
// Everything else is derived from services.yaml.
var allowedNames = map[string]string{
	".ci/load":      "its requests need keys, which identity's command makes",
	".ci/kind-load": "the same, in a cluster",
	"models/":       "the protocols between these services",
	"services/local/internal/history/body.go": "an invoice has a property of that name",
	"services/local/internal/seed/seed.go":    "the first data is made by commands of identity and bookings",
	"services/local/internal/stack/stripe.go": "the first account at Stripe's stand-in is connected by a command of payments",
	"services/local/stripe/":                  "Stripe has a balance of that name",
	"charts/platform/files/":                  "the list itself, and alerts about the faults of one service",
	"charts/platform/values":                  "the values of one service",
	"charts/platform/templates/NOTES.txt":     "the first tenant is made by a command of identity",
	"charts/platform/templates/platform-api":  "identity serves the platform API",
	"charts/generate/dashboards.yaml":         "dashboards about one service",
	"charts/examples/":                        "the same, for one kind of cluster",
	"skaffold.yaml":                           "the images that it watches",
	"services/local/internal/e2e/browser/":    "a browser has a console too",
}

// most is the maximum number of files that may name one service, without the chart and the models.
const most = 5

// named returns expressions that match a service's name where it means the process: as a separate string, in a path or an image, or
// in a list. A resource such as /customers, an identifier, and a comment do not count.
func named(service string) (code, list *regexp.Regexp) {
	const inPath = `(?:services/|bin/|holdfast[-/])%[1]s\b|UPSTREAM_%[2]s_URL`
	name, upper := service, strings.ToUpper(service)
	return regexp.MustCompile(fmt.Sprintf(inPath+"|[\"'`]%[1]s[\"'`]", name, upper)),
		regexp.MustCompile(fmt.Sprintf(inPath+`|(?:^|[^\w/.$:-])%[1]s(?:$|[^\w/.-])`, name, upper))
}

// TestTheMakefileReadsTheList checks that the Makefile and its scripts read the same list in the same order.
func TestTheMakefileReadsTheList(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(here + "/../Makefile"); err != nil { // so that go test runs again when the Makefile changes
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "-s", "--eval", "names: ; @echo $(SERVICES)", "names")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	if want := strings.Join(proto.ServiceNames(), " ") + "\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// TestFewFilesNameAService checks that a new service requires only a change of services.yaml and a new folder: no other file
// contains its own list.
func TestFewFilesNameAService(t *testing.T) {
	t.Parallel()
	found := map[string][]string{} // files by service
	for path, text := range sources(t) {
		for _, s := range proto.Services() {
			// Tests and tools must name the public service, because it is the platform's entry point.
			if s.Public || belongs(path, s) || !names(path, text, s.Name) {
				continue
			}
			allowed := slices.ContainsFunc(keys(allowedNames), func(prefix string) bool { return strings.HasPrefix(path, prefix) })
			if !allowed {
				t.Errorf("%s names the service %s: take the services from proto/services.yaml (proto.Services, or SERVICES of the Makefile); "+
					"where the file is about this one service, add it to allowedNames", path, s.Name)
			}
			if !strings.HasPrefix(path, "charts/") && !strings.HasPrefix(path, "models/") {
				found[s.Name] = append(found[s.Name], path)
			}
		}
	}
	for service, files := range found {
		slices.Sort(files)
		t.Logf("%s is named in %v", service, files)
		if len(files) > most {
			t.Errorf("%d files name the service %s, at most %d may: %v", len(files), service, most, files)
		}
	}
}

// belongs reports whether a file belongs to the service itself, or to a service that services.yaml connects with it through a call
// in either direction or through its events.
func belongs(path string, s proto.Service) bool {
	for _, other := range proto.Services() {
		if !strings.HasPrefix(path, "services/"+other.Name+"/") {
			continue
		}
		reads := func(a, b proto.Service) bool {
			return slices.ContainsFunc(a.Reads, func(topic string) bool { return slices.Contains(b.Topics, topic) })
		}
		return other.Name == s.Name || slices.Contains(other.Calls, s.Name) || slices.Contains(s.Calls, other.Name) || reads(other, s) || reads(s, other)
	}
	return false
}

// names reports whether a file names the service outside comments.
func names(path, text, service string) bool {
	code, list := named(service)
	pattern, comment := list, "#"
	if slices.Contains([]string{".go", ".ts"}, filepath.Ext(path)) {
		pattern, comment = code, "//"
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(" "+strings.ReplaceAll(line, "\t", " "), " "+comment)
		if pattern.MatchString(strings.TrimRight(line, "\n")) {
			return true
		}
	}
	return false
}

// sources returns the files of the repository by path, without documentation, tests of a service's behavior, the SDKs and the
// examples, which know resources only, and this folder.
func sources(t *testing.T) map[string]string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stat(here + "/../.git/index") // so that go test runs again when a file is added
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--", ":!proto", ":!docs", ":!loadtest/k6", ":!sdks", ":!examples", ":!**/testdata/**")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	all := map[string]string{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		measures := strings.HasPrefix(path, "loadtest/") && strings.Count(path, "/") == 1 // the behavior of one service
		if strings.HasSuffix(path, "_test.go") || measures || slices.Contains([]string{"k8s/values-test.yaml", "LICENSE"}, path) || slices.Contains([]string{".md", ".sum", ".mod", ".sql", ".js"}, filepath.Ext(path)) {
			continue
		}
		text, err := os.ReadFile(here + "/../" + path)
		if errors.Is(err, fs.ErrNotExist) { // it is being deleted
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(text)
	}
	if len(all) < 100 {
		t.Fatalf("only %d files", len(all))
	}
	return all
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}
