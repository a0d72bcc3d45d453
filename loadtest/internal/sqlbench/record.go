package sqlbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

var errRecord = errors.New("recording the service's SQL")

// logTime is how long a change of log_statement needs to reach all sessions, and a line to reach the log through its
// pipe.
const logTime = 300 * time.Millisecond

// Recording is the SQL that a service sent to PostgreSQL while it processed one request.
type Recording struct {
	Statements []Statement
	Trips      int // according to the service's own log line
}

// Record calls send, which sends exactly one request of the route to a service. database is the service's URL of its
// database. statements and lines return what was added to the logs of PostgreSQL and of the service.
func Record(
	ctx context.Context, admin *pgx.Conn, database, route string, statements, lines func() (string, error),
	send func() error,
) (*Recording, error) {
	app, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	if err := logStatements(ctx, admin, "all"); err != nil {
		return nil, err
	}
	err = send()
	time.Sleep(logTime)
	if err = errors.Join(err, logStatements(ctx, admin, "none")); err != nil {
		return nil, err
	}
	log, err := statements()
	if err != nil {
		return nil, err
	}
	own, err := lines()
	if err != nil {
		return nil, err
	}
	all, err := Parse(log, app.User.Username())
	if err != nil {
		return nil, err
	}
	trips, err := roundTrips(own, route)
	return &Recording{Statements: Requests(all), Trips: trips}, err
}

// logStatements changes log_statement for every session. Each session uses it from its next statement on.
func logStatements(ctx context.Context, admin *pgx.Conn, what string) error {
	for _, sql := range []string{"alter system set log_statement = '" + what + "'", "select pg_reload_conf()"} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%w: %w", errRecord, err)
		}
	}
	time.Sleep(logTime)
	return nil
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
