package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/loadtest/internal/sqlbench"
)

var errRecord = errors.New("recording the service's SQL")

// recording is what a service has sent to PostgreSQL while it answered one request of a route.
type recording struct {
	service, route string
	statements     []sqlbench.Statement
	trips          int // by the service's own log line
}

// record fills the recordings while do runs, which makes exactly one request of each route.
func (b *bench) record(ctx context.Context, admin *pgx.Conn, do func() error, all ...*recording) error {
	if err := logStatements(ctx, admin, "all"); err != nil {
		return err
	}
	statements, lines := b.follow("postgres"), make([]func() (string, error), len(all))
	for i, r := range all {
		lines[i] = b.follow(r.service)
	}
	err := do()
	time.Sleep(300 * time.Millisecond) // both logs go through a pipe
	if err = errors.Join(err, logStatements(ctx, admin, "none")); err != nil {
		return err
	}
	log, err := statements()
	if err != nil {
		return err
	}
	for i, r := range all {
		line, err := lines[i]()
		if err != nil {
			return err
		}
		if err := b.sent(r, log, line); err != nil {
			return err
		}
	}
	return nil
}

// sent reads a recording from PostgreSQL's log and the service's.
func (b *bench) sent(r *recording, log, lines string) error {
	settings, err := b.platform.Settings(r.service)
	if err != nil {
		return err
	}
	app, err := url.Parse(settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	all, err := sqlbench.Parse(log, app.User.Username())
	if err != nil {
		return err
	}
	r.statements = sqlbench.Requests(all)
	r.trips, err = roundTrips(lines, r.route)
	return err
}

// logStatements changes log_statement for every session. Each session uses it from its next statement on.
func logStatements(ctx context.Context, admin *pgx.Conn, what string) error {
	if _, err := admin.Exec(ctx, "alter system set log_statement = '"+what+"'"); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	_, err := admin.Exec(ctx, "select pg_reload_conf()")
	time.Sleep(300 * time.Millisecond)
	return err
}

// follow returns a function that reads what was added to a log since the call.
func (b *bench) follow(name string) func() (string, error) {
	path := b.platform.LogFile(name)
	info, err := os.Stat(path)
	return func() (string, error) {
		if err != nil {
			return "", err
		}
		f, err := os.Open(path) //nolint:gosec // our own folder
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.NewSectionReader(f, info.Size(), 16<<20))
		return string(text), err
	}
}

// roundTrips reads postgres_calls from the log line of the only request of route.
func roundTrips(log, route string) (int, error) {
	for line := range strings.Lines(log) {
		var wide struct {
			Route string `json:"route"`
			Calls int    `json:"postgres_calls"`
		}
		if json.Unmarshal([]byte(line), &wide) == nil && wide.Route == route {
			return wide.Calls, nil
		}
	}
	return 0, fmt.Errorf("%w: no log line of %s", errRecord, route)
}
