package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var quoted = regexp.MustCompile("`([A-Z][A-Z0-9_]+)`")

// TestBoundsAreTheSettings checks that each setting in the table of bounds belongs to a service, and that its default there
// equals the default in the code.
func TestBoundsAreTheSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operations/bounds.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for _, s := range services {
		for name, defaults := range settings(t, s) {
			known[name] = append(known[name], defaults...)
		}
	}
	found := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 { // bound, setting, default, behavior above it
			continue
		}
		names, values := quoted.FindAllStringSubmatch(cells[2], -1), strings.Split(strings.TrimSpace(cells[3]), ", ")
		if len(names) > 0 && len(names) != len(values) {
			t.Errorf("%d settings and %d defaults: %s", len(names), len(values), line)
			continue
		}
		for i, m := range names {
			found++
			if want := known[m[1]]; want == nil || slices.ContainsFunc(want, func(d string) bool { return plain(d) != plain(values[i]) }) {
				t.Errorf("%s: the table says %s, the code %q", m[1], values[i], want)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d settings in the table", found)
	}
}

// plain converts a number or a time, in the notation of the code or of the documentation, to one format.
func plain(value string) string {
	value = strings.ReplaceAll(value, ",", "")
	if d, err := time.ParseDuration(strings.ReplaceAll(value, " ", "")); err == nil {
		return d.String()
	}
	if mib, ok := strings.CutSuffix(value, " MiB"); ok {
		if n, err := strconv.Atoi(mib); err == nil {
			return strconv.Itoa(n << 20)
		}
	}
	return value
}
