package main

import (
	"context"
	"errors"
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

// compare returns warnings about figures that are worse than in earlier runs, and stores this run if it belongs to a
// commit.
func (b *bench) compare(ctx context.Context, checkout string) ([]string, error) {
	path := filepath.Join(checkout, historyFile)
	past, err := history.Read(path)
	if err != nil {
		return nil, err
	}
	warnings := history.Regressions(past, b.table.Rows())
	commit, err := b.commit(ctx, checkout)
	if err != nil {
		b.say("not added to %s: %v", historyFile, err)
		return warnings, nil
	}
	return warnings, history.Append(path, time.Now().UTC().Format(time.DateOnly), commit, b.table.Rows())
}

// The reasons why a run is not stored.
var (
	errShort    = fmt.Errorf("BENCH_SECONDS is less than %d", historySeconds)
	errProfiled = errors.New("profiles were recorded")
	errChanged  = errors.New("the work tree has changes")
)

// commit returns the checkout's commit, or why the run is not stored for it. The history itself may have changes.
func (b *bench) commit(ctx context.Context, checkout string) (string, error) {
	switch {
	case b.Seconds < historySeconds:
		return "", errShort
	case b.Profile != "":
		return "", errProfiled
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", checkout}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	changes, err := git("status", "--porcelain", "--", ".", ":(exclude)"+historyFile)
	if err == nil && changes != "" {
		err = errChanged
	}
	if err != nil {
		return "", err
	}
	return git("rev-parse", "--short=12", "HEAD")
}
