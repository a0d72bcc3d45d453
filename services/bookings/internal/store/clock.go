package store

import (
	"context"
	"fmt"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// PutClock writes what is known of the caller's test clock, unless something as new is known already. It does
// not wait for a row that it would leave alone, so that writes of one tenant do not queue there.
func PutClock(ctx context.Context, tx pg.Tx, c domain.TestClock) error {
	_, err := tx.Exec(ctx, `
		insert into test_clocks as c (tenant_id, livemode, frozen_at, version)
		select @tenant, @live, @frozen_at::timestamptz, @version::bigint
		where not exists (select from test_clocks k where k.tenant_id = @tenant and k.livemode = @live and k.version >= @version)
		on conflict (tenant_id, livemode) do update
		set frozen_at = excluded.frozen_at, version = excluded.version
		where c.version < excluded.version`, pg.Args{"frozen_at": c.FrozenAt, "version": c.Version})
	if err != nil {
		return fmt.Errorf("put test clock: %w", err)
	}
	return nil
}
