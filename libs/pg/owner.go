package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ErrHidden reports that the owner of a database cannot see all rows. Whatever such an owner reports or deletes is incomplete.
var ErrHidden = errors.New("row-level security can hide rows from the owner of the database")

// undefinedFunction is the code of a database of an older release, whose owner has BYPASSRLS instead of policies.
const undefinedFunction = "42883"

// CheckOwner returns ErrHidden unless the role of conn sees all rows of each table. Commands that read or delete as the owner call it
// first.
func CheckOwner(ctx context.Context, conn *pgx.Conn) error {
	return hidden(ctx, conn, `
		select t from hidden_tables() t
		union
		select c.oid::regclass::text from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relrowsecurity and not pg_has_role(c.relowner, 'usage')
		order by 1`)
}

// hidden returns ErrHidden with the tables of a query.
func hidden(ctx context.Context, q querier, query string) error {
	rows, err := q.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("check the owner's policies: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("check the owner's policies: %w", err)
	}
	if len(tables) > 0 {
		return fmt.Errorf("%w: run migrate as the owner, and remove restrictive policies: %s", ErrHidden, strings.Join(tables, ", "))
	}
	return nil
}

// openToOwner adds the owner's policy to each table that lacks it, such as tables of a dump that was restored with another owner, and
// checks the result.
func openToOwner(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `select open_to_owner(t::regclass) from hidden_tables() t`); err != nil {
		return fmt.Errorf("add the owner's policies: %w", err)
	}
	return CheckOwner(ctx, conn)
}

// checkServer returns an error if the server of a pool is not usable for a service.
func (db *DB) checkServer(ctx context.Context) error {
	var standby bool
	if err := db.pool.QueryRow(ctx, `select pg_is_in_recovery()`).Scan(&standby); err != nil {
		return fmt.Errorf("check the server: %w", err)
	}
	if standby {
		return errStandby
	}
	err := hidden(ctx, db.pool, `select hidden_tables()`)
	if Code(err) == undefinedFunction {
		return nil
	}
	return err
}
