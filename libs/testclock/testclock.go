// Package testclock stores a service's copy of the tenants' test clocks, which identity owns. Background work, such as an expiry,
// uses it to follow the tenant's time. The service creates the table test_clocks in its own migration.
package testclock

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
)

// Clock is the last known state of a tenant's test clock, which applies only in test mode.
type Clock struct {
	FrozenAt *time.Time // nil: real time
	Version  int64      // the tenant's version, incremented by each change of the clock
}

// Now returns the tenant's time: the frozen time if there is one, otherwise real.
func (c Clock) Now(real time.Time) time.Time {
	if c.FrozenAt != nil {
		return *c.FrozenAt
	}
	return real
}

// Put stores the caller's test clock, unless the stored one is at least as new. It does not wait for a row that it would not
// change, so that writes of one tenant do not queue there.
func Put(ctx context.Context, tx pg.Tx, c Clock) error {
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

// Save stores the caller's clock along with something that expires. A later reader then uses a clock that is at least as recent,
// even if the event of a return to real time has not arrived yet.
func Save(ctx context.Context, tx pg.Tx) error {
	c := caller.FromContext(ctx)
	if c.Mode != caller.Test || c.PolicyVersion == 0 {
		return nil
	}
	return Put(ctx, tx, Clock{FrozenAt: c.Clock, Version: c.PolicyVersion})
}

// Known is the statement that reads the clock of the caller's tenant and mode. It returns no row if no clock is stored.
const Known = `select c.frozen_at, c.version from test_clocks c where c.tenant_id = @tenant and c.livemode = @live`
