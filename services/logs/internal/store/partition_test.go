package store_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/internal/store"
	"holdfast.dev/services/logs/migrations"
)

const day = 24 * time.Hour

// partitions returns the days that have a partition.
func partitions(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	return query[string](t, db, `select right(inhrelid::regclass::text, 8) from pg_inherits where inhparent = 'request_logs'::regclass order by 1`)
}

func name(at time.Time) string { return at.UTC().Format("20060102") }

// Past days are dropped with their counts, and the next days exist before they begin.
func TestDaysAreCreatedAndDropped(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t, migrations.FS), time.Now()
	ctx := pgtest.Ctx(t, caller.Live)
	old, recent := request(caller.FromContext(ctx), now.Add(-6*day)), request(caller.FromContext(ctx), now)
	insert(t, db, old, recent)
	for range 2 { // a repetition changes nothing
		if n := maintain(t, db, now.Add(-5*day), now.Add(4*day)); n != 0 {
			t.Errorf("%d are left", n)
		}
		all := partitions(t, db)
		if len(all) != 10 || all[0] != name(now.Add(-5*day)) || all[9] != name(now.Add(4*day)) {
			t.Errorf("partitions %v", all)
		}
	}
	if l := list(t, db, ctx, store.Filter{}); len(l) != 1 || l[0].ID != recent.ID {
		t.Errorf("left: %+v", l)
	}
	if n := query[int](t, db, `select rows::int from request_log_counts`); !slices.Equal(n, []int{1}) {
		t.Errorf("counts %v", n)
	}
}

// A past day that a dump reads is left, so that no other statement waits behind its drop. The next call drops it.
func TestADayThatIsReadIsLeft(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t, migrations.FS), time.Now()
	ctx := pgtest.Ctx(t, caller.Live)
	end := pgtest.LongRead(t, db)
	start := time.Now()
	if n := maintain(t, db, now.Add(-5*day), now.Add(4*day)); n != 2 {
		t.Errorf("%d are left", n)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it waited %s", took)
	}
	insert(t, db, request(caller.FromContext(ctx), now.Add(4*day))) // the new days exist
	end()
	if n := maintain(t, db, now.Add(-5*day), now.Add(4*day)); n != 0 || len(partitions(t, db)) != 10 {
		t.Errorf("%d are left of %v", n, partitions(t, db))
	}
}
