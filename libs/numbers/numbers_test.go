package numbers_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/pgtest"
)

var migrations = fstest.MapFS{"00001_counters.sql": {Data: []byte(`-- +goose Up
create table counters (tenant_id uuid not null, livemode boolean not null, next bigint not null, primary key (tenant_id, livemode));
select protect('counters');
-- +goose Down
drop table counters;
`)}}

// Two processes never assign the same number. Each tenant and mode begins at 1.
func TestNumbers(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.New(t, migrations), ids.New[ids.TenantPrefix]()
	for _, mode := range []caller.Mode{caller.Test, caller.Live} {
		ctx := pgtest.CtxOf(t, tenant, mode)
		processes := [2]*numbers.Numbers{}
		for i := range processes {
			processes[i] = &numbers.Numbers{DB: db.App, Table: "counters", Format: "X-%06d"}
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		seen := map[string]bool{}
		for i := range 100 {
			all.Go(func() {
				n, err := processes[i%2].Next(ctx)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[n] = true
			})
		}
		all.Wait()
		if len(seen) != 100 || !seen["X-000001"] {
			t.Errorf("%s: %d numbers, %v", mode, len(seen), fmt.Sprint(seen))
		}
	}
}
