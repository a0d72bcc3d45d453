package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/loadtest/internal/report"
)

// checkoutWithHistory creates a repository with one commit.
func checkoutWithHistory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "loadtest"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, historyFile), "date,commit,figure,value,unit,yardstick,ratio\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "One"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRunsOfACleanWorkTreeAreStored checks that the stored figures do not count as a change, so that the next run is
// stored too.
func TestRunsOfACleanWorkTreeAreStored(t *testing.T) {
	t.Parallel()
	dir := checkoutWithHistory(t)
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
}

func TestOtherRunsAreNotStored(t *testing.T) {
	t.Parallel()
	dir := checkoutWithHistory(t)
	check := func(cfg settings, want error) {
		t.Helper()
		b := &bench{settings: cfg}
		if commit, err := b.commit(t.Context(), dir); !errors.Is(err, want) || (len(commit) == 12) != (want == nil) {
			t.Errorf("%+v: %q, %v", cfg, commit, err)
		}
	}
	check(settings{Seconds: historySeconds}, nil)
	check(settings{Seconds: historySeconds - 1}, errShort)
	check(settings{Seconds: historySeconds, Profile: "p"}, errProfiled)
	write(t, filepath.Join(dir, "a"), "2")
	check(settings{Seconds: historySeconds}, errChanged)
}
