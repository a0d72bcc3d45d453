package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// PutClock writes what is known of the caller's test clock, unless something as new is known already. It does
// not wait for a row that it would leave alone, so that writes of one tenant do not queue there.
func PutClock(ctx context.Context, tx pg.Tx, c domain.TestClock) error {
	_, err := tx.Exec(ctx, `
		insert into test_clocks as c (frozen_at, version)
		select $1::timestamptz, $2::bigint where not exists (select from test_clocks k where k.version >= $2)
		on conflict (tenant_id, livemode) do update
		set frozen_at = excluded.frozen_at, version = excluded.version
		where c.version < excluded.version`, c.FrozenAt, c.Version)
	if err != nil {
		return fmt.Errorf("put test clock: %w", err)
	}
	return nil
}

// Clock reads what is known of the caller's test clock; live mode has none, nor has a tenant that never set one.
func Clock(ctx context.Context, q pg.Q) (domain.TestClock, error) {
	list, err := many(ctx, q, pgx.RowToStructByName[domain.TestClock], `select c.frozen_at, c.version from test_clocks c`)
	if err != nil || len(list) == 0 {
		return domain.TestClock{}, err
	}
	return list[0], nil
}
