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

// Store writes requests that are not stored yet, in one transaction. It skips requests that are older than the log, and requests
// whose time is far in the future. A tenant and mode that has more than MaxRows rows then loses its oldest ones.
func (a *Intake) Store(ctx context.Context, list []domain.RequestLog) error {
	now := a.Now()
	total := len(list)
	list = slices.DeleteFunc(list, func(l domain.RequestLog) bool { return !domain.Stores(l.ID.Time(), now, a.Retention) })
	// Processes that write the same rows lock them in the same order, so that no deadlock occurs.
	slices.SortFunc(list, func(x, y domain.RequestLog) int {
		return cmp.Or(compare(x.TenantID.UUID(), y.TenantID.UUID()), compare(x.ID.UUID(), y.ID.UUID()))
	})
	stored, deleted := 0, 0
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		stored, deleted = 0, 0
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
	return nil
}

func compare(x, y [16]byte) int { return slices.Compare(x[:], y[:]) }

// ahead is how long before their day partitions are created.
const ahead = 3 * 24 * time.Hour

// Maintain creates the partitions of the next days and drops those of past days.
func (a *Intake) Maintain(ctx context.Context) error {
	now, remaining := a.Now(), 0
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		remaining, err = store.MaintainPartitions(ctx, tx, now.Add(-a.Retention), now.Add(ahead))
		return err
	})
	if err != nil {
		return err
	}
	if a.Metrics.behind.Set(float64(remaining)); remaining > 0 {
		a.Log.WarnContext(ctx, "past days of the request log are left, because a transaction reads them", slog.Int("days", remaining))
	}
	return nil
}
