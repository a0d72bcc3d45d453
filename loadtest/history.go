package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/loadtest/internal/history"
)

// historyFile has the figures of earlier runs, in the checkout.
const historyFile = "loadtest/history.csv"

// historySeconds is the shortest run that is added to historyFile. Shorter ones vary too much.
const historySeconds = 10

// compare returns warnings about figures that are worse than in earlier runs, and stores this run if it should be.
func (b *bench) compare(ctx context.Context, checkout string) ([]string, error) {
	path := b.History
	if path == "" {
		path = filepath.Join(checkout, historyFile)
	}
	past, err := history.Read(path)
	if err != nil {
		return nil, err
	}
	commit, clean, unknown := revision(ctx, checkout)
	now := history.Entries(time.Now().UTC().Format(time.DateOnly), commit, b.table.Rows())
	warnings := history.Regressions(past, now)
	if reason := b.exclusion(clean, unknown); reason != "" {
		b.say("not added to %s: %s", historyFile, reason)
		return warnings, nil
	}
	return warnings, history.Append(path, now)
}

// exclusion returns why the run is not added to the history; "" if it is added. unknown is why there is no revision.
func (b *bench) exclusion(clean bool, unknown error) string {
	switch {
	case b.History != "":
		return ""
	case unknown != nil:
		return unknown.Error()
	case !clean:
		return "the work tree has changes"
	case b.Seconds < historySeconds:
		return fmt.Sprintf("BENCH_SECONDS is less than %d", historySeconds)
	case b.Profile != "":
		return "profiles were recorded"
	default:
		return ""
	}
}

// revision returns the checkout's commit, and whether its work tree has no changes except in the history. The commit of a work tree
// with changes ends in "+".
func revision(ctx context.Context, checkout string) (commit string, clean bool, err error) {
	head, err := git(ctx, checkout, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", false, err
	}
	changes, err := git(ctx, checkout, "status", "--porcelain", "--", ".", ":(exclude)"+historyFile)
	if err != nil {
		return "", false, err
	}
	if changes != "" {
		return head + "+", false, nil
	}
	return head, true, nil
}

func git(ctx context.Context, checkout string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // constant arguments
	cmd.Dir = checkout
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(failed.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
