package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

const longestPage = 250 // lines of a page for platform administrators

// shellBlocks returns the code blocks of a page that are marked with sh.
func shellBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); strings.Contains(page, "/operations/") && lines > longestPage {
		t.Errorf("%s has %d lines, at most %d are allowed", page, lines, longestPage)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	return out
}

// docPages returns the pages of docs, without the guides.
func docPages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "operations/*.md"} {
		found, err := filepath.Glob("../../../../docs/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 20 {
		t.Fatalf("only the pages %v", all)
	}
	return all
}

var aCommand = regexp.MustCompile(`(?:bin/|deploy(?:ment)?/holdfast-)([a-z]+)(?: -- /service)? ([^|<>;)#]+)`)

// TestCommandsOfPagesExist checks that each command of a service in the pages exists, with all of its flags.
func TestCommandsOfPagesExist(t *testing.T) {
	onMachine(t)
	names, seen := map[string]bool{}, 0
	for _, s := range proto.Services() {
		names[s.Name] = true
	}
	for _, page := range docPages(t) {
		for _, block := range shellBlocks(t, page) {
			block = strings.ReplaceAll(block, "\\\n", " ")
			for _, m := range aCommand.FindAllStringSubmatch(block, -1) {
				if !names[m[1]] {
					continue // a tool of the repository
				}
				seen++
				line, _, _ := strings.Cut(m[2], "\n")
				subcommands := strings.Fields(line)
				for i, word := range subcommands {
					if strings.HasPrefix(word, "-") {
						subcommands = subcommands[:i]
						break
					}
				}
				cmd := exec.Command("bash", "-c", "bin/"+m[1]+" "+line+" --help")
				cmd.Dir = shared.root
				out, err := cmd.CombinedOutput()
				_, usage, _ := strings.Cut(string(out), "Usage:\n  ")
				usage, _, _ = strings.Cut(usage, "\n")
				want, got := append([]string{m[1]}, subcommands...), strings.Fields(usage)
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						got = got[:i] // from here on there are the command's arguments
						break
					}
				}
				if err != nil || len(got) < 2 || strings.Contains(usage, "[command]") {
					t.Errorf("%s: %s %s: %v\n%s", filepath.Base(page), m[1], line, err, out)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("the pages have %d commands", seen)
	}
}

// TestStatementsOfPagesRun runs each block with statements for a service's database as it is written. The database of a service must
// accept it. The other commands of the block do nothing.
func TestStatementsOfPagesRun(t *testing.T) {
	onMachine(t)
	prelude := `set -e
psql() { test "$1" != "$MIGRATE_DATABASE_URL" || command psql --set=ON_ERROR_STOP=1 "$@"; }
kubectl() { :; }; pg_dump() { :; }; pg_restore() { :; }
`
	for _, s := range proto.Services() {
		prelude += "bin/" + s.Name + "() { :; }\n"
	}
	seen := 0
	for _, page := range docPages(t) {
		for _, block := range shellBlocks(t, page) {
			if !strings.Contains(block, `psql "$MIGRATE_DATABASE_URL"`) {
				continue
			}
			seen++
			var accepted bool
			var errs strings.Builder
			for _, s := range proto.Services() {
				if !s.Database || accepted {
					continue
				}
				env, err := readEnv(shared.path("services", s.Name+".env"))
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command("bash", "-c", prelude+block)
				cmd.Dir, cmd.Env = shared.root, append(os.Environ(), "MIGRATE_DATABASE_URL="+env["MIGRATE_DATABASE_URL"])
				out, err := cmd.CombinedOutput()
				if accepted = err == nil; !accepted {
					errs.WriteString(s.Name + ": " + string(out))
				}
			}
			if !accepted {
				t.Errorf("%s: no database accepts%s\n%s", filepath.Base(page), block, errs.String())
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d blocks have statements", seen)
	}
}
