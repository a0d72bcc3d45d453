package pg

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
)

// Args are the arguments of a statement by name: @id is Args{"id": …}. @tenant and @live are the tenant and the mode of the caller
// in the context. Every statement of the app role contains them. Row-level security is therefore only a second protection, and each
// statement can be routed to one tenant's shard.
type Args map[string]any

var _ pgx.QueryRewriter = Args{}

// RewriteQuery implements pgx.QueryRewriter. A name in the statement without an argument is an error.
func (a Args) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, _ []any) (string, []any, error) {
	s, err := statements.parse(ctx, conn, sql, a)
	if err != nil {
		return "", nil, err
	}
	values := make([]any, len(s.names))
	for i, name := range s.names {
		v, given := a[name]
		switch {
		case given:
			values[i] = v
		case name == "tenant" || name == "live":
			c, err := caller.Require(ctx)
			if err != nil {
				return "", nil, fmt.Errorf("statement of a tenant: %w", err)
			}
			if values[i] = c.Tenant; name == "live" {
				values[i] = c.Live()
			}
		default:
			return "", nil, errMissing(name)
		}
	}
	return s.sql, values, nil
}

func errMissing(name string) error {
	return fmt.Errorf("the statement names @%s, which is not among its arguments", name)
}

// statement is a statement with numbers in place of its names.
type statement struct {
	sql   string
	names []string // of $1, $2, …
}

// maxStatements bounds the cached statements. A service has fewer. A list has one statement for each combination of filters.
const maxStatements = 4096

// cache stores parsed statements by their text.
type cache struct {
	mu     sync.RWMutex
	parsed map[string]statement
}

var statements = &cache{parsed: map[string]statement{}}

func (c *cache) parse(ctx context.Context, conn *pgx.Conn, sql string, a Args) (statement, error) {
	c.mu.RLock()
	s, ok := c.parsed[sql]
	c.mu.RUnlock()
	if ok {
		return s, nil
	}
	names := pgx.NamedArgs{"tenant": "tenant", "live": "live"}
	for name := range a {
		names[name] = name
	}
	text, args, err := names.RewriteQuery(ctx, conn, sql, nil)
	if err != nil {
		return statement{}, fmt.Errorf("statement: %w", err)
	}
	s = statement{sql: text, names: make([]string, len(args))}
	for i, name := range args {
		if s.names[i], ok = name.(string); !ok {
			return statement{}, errMissing(fmt.Sprintf("… (place %d of %s)", i+1, text))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parsed) >= maxStatements {
		clear(c.parsed)
	}
	c.parsed[sql] = s
	return s, nil
}
