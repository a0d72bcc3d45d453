package archtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/archtest"
)

func TestThisModule(t *testing.T) {
	archtest.Sizes(t)
	problems, err := archtest.Imports("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestImportsNamesEachForbiddenImport(t *testing.T) {
	t.Setenv("GOWORK", "off")
	got, err := archtest.Imports(filepath.Join("testdata", "crossed"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"internal/app imports database/sql: only these layers import it: []",
		"internal/app imports net/http: a verb knows nothing of HTTP",
		"internal/domain imports holdfast.dev/services/crossed/internal/store: domain may not import store",
		"internal/domain imports net/http: a verb knows nothing of HTTP",
		`internal/helpers: there is no layer "helpers"`,
	}
	compare(t, got, want, "holdfast.dev/services/crossed/")
}

func TestMeasureNamesEachSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "crossed"))); err != nil {
		t.Fatal(err)
	}
	big := "package store\n" + strings.Repeat("\n// a line", 650) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "internal", "store", "big.go"), []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := archtest.Measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"internal/api/long.go: function long has 92 lines, at most 80",
		"internal/domain/domain.go:12: reads the clock; take the time as an argument",
		"internal/store/big.go: 652 lines, at most 600",
		"internal/view: the package has no comment",
	}
	compare(t, got, want, "")
}

func compare(t *testing.T, got, want []string, prefix string) {
	t.Helper()
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], prefix)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
