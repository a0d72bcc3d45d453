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

	"holdfast.dev/loadtest/internal/sqlbench"
)

var errRecord = errors.New("recording the service's SQL")

// record returns the statements that the bookings service sends while do runs, and how many round trips they were by the
// log line of route. do makes exactly one request.
func (b *bench) record(ctx context.Context, s *shop, route string, do func() error) ([]sqlbench.Statement, int, error) {
	app, err := url.Parse(s.app)
	if err != nil {
		return nil, 0, err
	}
	if err := s.logStatements(ctx, "all"); err != nil {
		return nil, 0, err
	}
	statements, lines := b.follow("postgres"), b.follow("bookings")
	err = do()
	time.Sleep(300 * time.Millisecond) // both logs go through a pipe
	err = errors.Join(err, s.logStatements(ctx, "none"))
	if err != nil {
		return nil, 0, err
	}
	log, err := statements()
	if err != nil {
		return nil, 0, err
	}
	all, err := sqlbench.Parse(log, app.User.Username())
	if err != nil {
		return nil, 0, err
	}
	wide, err := lines()
	if err != nil {
		return nil, 0, err
	}
	trips, err := roundTrips(wide, route)
	return all, trips, err
}

// logStatements changes log_statement for every session. Each session uses it from its next statement on.
func (s *shop) logStatements(ctx context.Context, what string) error {
	if _, err := s.admin.Exec(ctx, "alter system set log_statement = '"+what+"'"); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	_, err := s.admin.Exec(ctx, "select pg_reload_conf()")
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
