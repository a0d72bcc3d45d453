// Package app contains the use cases of the request log: it stores the requests from Kafka, and keeps their number and age bounded.
package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
)

// Intake stores requests.
type Intake struct {
	Worker    *pg.DB // worker role, because a batch contains requests of many tenants
	Retention time.Duration
	MaxRows   int // of a tenant and mode; the oldest ones are deleted
	Now       func() time.Time
	Metrics   *Metrics
	Log       *slog.Logger
}

// Store writes requests that are not stored yet, and adds counts that are not added yet, in one transaction. It skips requests that are older than the log, and requests
// whose time is far in the future. A tenant and mode that has more than MaxRows rows then loses its oldest ones.
func (a *Intake) Store(ctx context.Context, list []domain.RequestLog, counts []domain.RequestCount) error {
	now := a.Now()
	total := len(list)
	list = slices.DeleteFunc(list, func(l domain.RequestLog) bool { return !domain.Stores(l.ID.Time(), now, a.Retention) })
	// Processes that write the same rows lock them in the same order, so that no deadlock occurs.
	slices.SortFunc(list, func(x, y domain.RequestLog) int {
		return cmp.Or(compare(x.TenantID.UUID(), y.TenantID.UUID()), compare(x.ID.UUID(), y.ID.UUID()))
	})
	received := requests(counts)
	counts = slices.DeleteFunc(counts, func(c domain.RequestCount) bool { return !c.Counts(now) })
	stored, deleted, added := 0, 0, int64(0)
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		stored, deleted, added = 0, 0, 0
		if len(counts) > 0 {
			var err error
			if added, err = store.AddRequestCounts(ctx, tx, counts, now); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(list, store.MaxInsert) {
			n, err := store.InsertRequestLogs(ctx, tx, part)
			if err != nil {
				return err
			}
			stored += n
			if n, err = store.TrimRequestLogs(ctx, tx, part, a.MaxRows); err != nil {
				return err
			}
			deleted += n
		}
		return nil
	})
	if err != nil {
		return err
	}
	for result, n := range map[string]int{"stored": stored, "repeated": len(list) - stored, "out_of_range": total - len(list), "deleted": deleted} {
		a.Metrics.entries.WithLabelValues(result).Add(float64(n))
	}
	known := requests(counts)
	for result, n := range map[string]int64{"added": added, "repeated": known - added, "out_of_range": received - known} {
		a.Metrics.counts.WithLabelValues(result).Add(float64(n))
	}
	return nil
}

// requests adds up counts.
func requests(counts []domain.RequestCount) (n int64) {
	for _, c := range counts {
		n += c.Requests
	}
	return n
}

func compare(x, y [16]byte) int { return slices.Compare(x[:], y[:]) }

// ahead is how long before their day partitions are created.
const ahead = 3 * 24 * time.Hour

// Maintain creates the partitions of the next days, drops those of past days, and deletes old counts.
func (a *Intake) Maintain(ctx context.Context) error {
	now, remaining := a.Now(), 0
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		remaining, err = store.MaintainPartitions(ctx, tx, now.Add(-a.Retention), now.Add(ahead))
		return err
	})
	for more := true; more && err == nil; {
		err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			more, err = store.SweepRequestCounts(ctx, tx, now.Add(-domain.CountedFor))
			return err
		})
	}
	if err != nil {
		return err
	}
	if a.Metrics.behind.Set(float64(remaining)); remaining > 0 {
		a.Log.WarnContext(ctx, "expired days of the request log not dropped: a transaction reads them; trying again", slog.Int("days", remaining))
	}
	return nil
}
