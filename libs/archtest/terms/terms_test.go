package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                  "",
		"told":              "told",
		"cancelTold":        "cancel told",
		"HTTPServer":        "http server",
		"serverHTTP":        "server http",
		"kill_test":         "kill test",
		"TestIsToldAgain2":  "test is told again2",
		"_x.Y":              "x y",
		"untold":            "untold",
		"RetoldTwiceByURLs": "retold twice by ur ls",
	} {
		if got := strings.Join(split(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := write("terms.yml", `
- words: [told]
  use: outcome
  allow: [Retold, WasTold]
- words: [home]
  use: owner
  only: [`+dir+`/pay*]
`)
	payments := write("payments/told.go", `package payments
type Told struct { home, WasTold int }
func (x Told) isTold(wasTold int) (told error) {
	homes, home := 1, 2
	for told, aTold := range []int{homes, home} { _, _ = told, aTold }
	return
}
const theTold = 1
`)
	other := write("other/home.go", "package other\n\nvar Home, Untold = 1, payments.Told\n")
	found, err := Check(list, []string{payments, other})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range found {
		at, rest, _ := strings.Cut(strings.TrimPrefix(line, dir+"/"), ": ")
		name, _, _ := strings.Cut(rest, ":")
		got = append(got, at+" "+name)
	}
	want := []string{
		"payments/told.go:1 told", "payments/told.go:2 Told", "payments/told.go:2 home", "payments/told.go:3 isTold",
		"payments/told.go:3 wasTold", "payments/told.go:3 told", "payments/told.go:4 home", "payments/told.go:5 told",
		"payments/told.go:5 aTold", "payments/told.go:8 theTold",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list, code := filepath.Join(dir, "terms.yml"), filepath.Join(dir, "a.go")
	for text, want := range map[string]string{
		"- word: [told]":                       "field word not found",
		"- words: [a":                          "terms.yml",
		"- words: [a]\n  only: ['services/[']": "syntax error in pattern",
	} {
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(code, []byte("package a"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(list, []string{code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Check(list, []string{filepath.Join(dir, "none.go")}); err == nil {
		t.Error("no error for a file that does not exist")
	}
}
