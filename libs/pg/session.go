package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// settings returns the server's settings for the statements of a pool.
func (o Options) settings() map[string]string {
	s := map[string]string{
		"statement_timeout":                   fmt.Sprint(o.StatementTimeout.Milliseconds()),
		"lock_timeout":                        fmt.Sprint(o.LockTimeout.Milliseconds()),
		"idle_in_transaction_session_timeout": "30000",
		// Prepared statements and foreign keys retain the plan from when a table was small. Every statement of a service has an index.
		// A sequential scan in such a plan would be slow until the next ANALYZE.
		"enable_seqscan": "off",
		"jit":            "off", // compiling takes longer than any of our statements
	}
	if o.Background {
		// The worker's statements take arrays. For each length of an array, the server would make another plan, which often takes longer
		// than the statement. The length does not matter, because an index finds each row.
		s["plan_cache_mode"] = "force_generic_plan"
	}
	if o.ByIndex {
		s["enable_hashjoin"], s["enable_mergejoin"], s["enable_bitmapscan"] = "off", "off", "off"
	}
	return s
}

// connect adds the settings that a connection has from its start. A pooler accepts only the time zone.
func (o Options) connect(params map[string]string) {
	params["timezone"] = "UTC"
	if !o.Pooler {
		maps.Copy(params, o.settings())
	}
}

// statement returns the first statement of each transaction: set, and behind a pooler the settings too. They end with the
// transaction, so that the next one on the same server connection, which can belong to another process, does not have them. It
// returns "" if there is nothing to set.
func (o Options) statement(set string) string {
	var parts []string
	if set != "" {
		parts = append(parts, set)
	}
	if o.Pooler {
		s := o.settings()
		for _, name := range slices.Sorted(maps.Keys(s)) {
			parts = append(parts, fmt.Sprintf("set_config('%s', '%s', true)", name, s[name]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "select " + strings.Join(parts, ", ")
}

// errDropped reports a server, usually a pooler, that accepted a connection's settings and ignored them.
var errDropped = errors.New("the server ignores the connection's settings, as a pooler does: set DATABASE_POOLER=true")

// errStandby reports a server that accepts no writes. A failover may be in progress, so a later connection may reach the new primary.
var errStandby = errors.New("the server is a standby, which accepts no writes: the URL must name the primary, not a reader endpoint; " +
	"with several hosts, add target_session_attrs=read-write")

// prepare registers the types of libs/ids with a new connection. Without a pooler, it checks that the connection has its settings: a
// pooler that ignores startup parameters would leave statements without time-outs. It also refuses a standby, which a name that moves to
// the new primary can still mean during a failover.
func (o Options) prepare(ctx context.Context, conn *pgx.Conn) error {
	registerUUID(conn)
	if o.Pooler {
		return nil
	}
	res := conn.PgConn().ExecParams(ctx, `select current_setting('enable_seqscan'), pg_is_in_recovery()`, nil, nil, nil, nil).Read()
	if res.Err != nil {
		return res.Err
	}
	if string(res.Rows[0][0]) != o.settings()["enable_seqscan"] {
		return errDropped
	}
	if string(res.Rows[0][1]) == "t" {
		return errStandby
	}
	return nil
}

// explain adds a hint to the error of a connection whose startup parameters were rejected. PostgreSQL reports an unknown parameter
// with another code.
func explain(err error, opt Options) error {
	if Code(err) == poolerError && !opt.Pooler {
		return fmt.Errorf("%w: if this is the address of a pooler, set DATABASE_POOLER=true", err)
	}
	return err
}

// poolerError is the code of every error that PgBouncer itself reports, such as a server that it cannot reach.
const poolerError = "08P01"
