// Package record captures the SQL that a service sends to PostgreSQL while it processes one request.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/loadtest/internal/sqlbench"
	"holdfast.dev/loadtest/internal/stack"
)

// ErrRecord is the error of each failed recording.
var ErrRecord = errors.New("recording the service's SQL")

// Recording is the SQL that a service sent to PostgreSQL while it processed one request of a route.
type Recording struct {
	Service, Route string
	Statements     []sqlbench.Statement
	Trips          int // according to the service's own log line
}

// All fills the recordings while do runs. do sends exactly one request of each route.
func All(ctx context.Context, p *stack.Platform, admin *pgx.Conn, do func() error, all ...*Recording) error {
	if err := logStatements(ctx, admin, "all"); err != nil {
		return err
	}
	statements, lines := p.Follow("postgres"), make([]func() (string, error), len(all))
	for i, r := range all {
		lines[i] = p.Follow(r.Service)
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
		if err := r.read(p, log, line); err != nil {
			return err
		}
	}
	return nil
}

// read extracts a recording from PostgreSQL's log and the service's log.
func (r *Recording) read(p *stack.Platform, log, lines string) error {
	settings, err := p.Settings(r.Service)
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
	r.Statements = sqlbench.Requests(all)
	r.Trips, err = roundTrips(lines, r.Route)
	return err
}

// logStatements changes log_statement for every session. Each session uses it from its next statement on.
func logStatements(ctx context.Context, admin *pgx.Conn, what string) error {
	if _, err := admin.Exec(ctx, "alter system set log_statement = '"+what+"'"); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	_, err := admin.Exec(ctx, "select pg_reload_conf()")
	time.Sleep(300 * time.Millisecond)
	return err
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
	return 0, fmt.Errorf("%w: no log line of %s", ErrRecord, route)
}
