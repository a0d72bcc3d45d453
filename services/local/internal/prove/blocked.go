package prove

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// BlockedOn returns a Blocked that asks PostgreSQL on a connection.
func BlockedOn(conn *pgx.Conn) Blocked {
	return func(ctx context.Context, pids []uint32) ([]uint32, error) {
		processes := make([]int32, len(pids))
		for i, pid := range pids {
			processes[i] = int32(pid)
		}
		rows, err := conn.Query(ctx, "select p from unnest($1::int[]) p where pg_blocking_pids(p) <> '{}'", processes)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (uint32, error) {
			var pid int32
			err := row.Scan(&pid)
			return uint32(pid), err
		})
	}
}
