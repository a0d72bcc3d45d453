package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/loadtest/internal/history"
	"holdfast.dev/loadtest/internal/report"
)

// repository creates a checkout with one commit, and returns a function that runs git in it.
func repository(t *testing.T) (dir string, run func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	run = func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	if err := os.Mkdir(filepath.Join(dir, "loadtest"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "1")
	run("add", "a")
	run("commit", "-q", "-m", "One")
	return dir, run
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRunsOfACleanWorkTreeAreStored checks that the stored figures do not count as a change, so that the next run is stored too.
func TestRunsOfACleanWorkTreeAreStored(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t)
	run := func(ratio float64) []string {
		t.Helper()
		b := &bench{settings: settings{Seconds: historySeconds}, table: &report.Table{}, began: time.Now()}
		b.table.Add(report.Row{Figure: "a", Value: report.PerSecond(100), Ratio: ratio})
		warnings, err := b.compare(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return warnings
	}
	if got := append(run(0.5), run(0.5)...); len(got) != 0 {
		t.Errorf("warnings %v", got)
	}
	if got := run(0.4); len(got) != 1 || !strings.Contains(got[0], "0.40 is more than 10 % worse than 0.50, the best of the last 2 runs") {
		t.Errorf("warnings %v", got)
	}
	got, err := history.Read(filepath.Join(dir, historyFile))
	if err != nil || len(got) != 3 || len(got[0].Commit) != 12 || got[0].Commit != got[2].Commit {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOtherRunsAreStoredOnlyOnRequest(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t)
	other := filepath.Join(t.TempDir(), "own.csv")
	for _, c := range []struct {
		name   string
		cfg    settings
		change bool
		stored string
	}{
		{"short", settings{Seconds: historySeconds - 1}, false, ""},
		{"profiled", settings{Seconds: historySeconds, Profile: "p"}, false, ""},
		{"changed", settings{Seconds: historySeconds}, true, ""},
		{"requested", settings{Seconds: 1, History: other}, true, other},
	} {
		if c.change {
			write(t, filepath.Join(dir, "a"), "2")
		}
		b := &bench{settings: c.cfg, table: &report.Table{}, began: time.Now()}
		b.table.Add(report.Row{Figure: "a", Value: report.PerSecond(100)})
		if _, err := b.compare(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, historyFile)); err == nil {
			t.Errorf("%s: it is stored in the checkout", c.name)
		}
		if c.stored == "" {
			continue
		}
		got, err := history.Read(c.stored)
		if err != nil || len(got) != 1 || !strings.HasSuffix(got[0].Commit, "+") {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
