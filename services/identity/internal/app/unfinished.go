package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// NewUnfinished creates and registers the metrics of erasures and of days of usage that are due and not done. They are read from the
// database, so all processes report the same.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *operation.Meter {
	erasures := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tenant_erasures_due", Help: "Erasures of tenants that are due and have not ended, by the status of the tenant: closing (the erasure has not begun) or erasing.",
	}, []string{"status"})
	oldestErasure := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tenant_erasures_due_oldest_seconds", Help: "Age of the oldest item of tenant_erasures_due, by status: since it was due (closing) or since it began (erasing); 0 when there is none.",
	}, []string{"status"})
	days := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "usage_days_due", Help: "Days whose usage is due and not recorded.",
	})
	oldestDay := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "usage_days_due_oldest_seconds", Help: "Time since the oldest item of usage_days_due was due; 0 when there is none.",
	})
	reg.MustRegister(erasures, oldestErasure, days, oldestDay)
	return &operation.Meter{Worker: worker, Now: now, Backlogs: []operation.Backlog{
		operation.Labelled(erasures, oldestErasure, string(domain.TenantClosing), store.UnfinishedClosings),
		operation.Labelled(erasures, oldestErasure, string(domain.TenantErasing), store.UnfinishedErasures),
		{Count: days, Age: oldestDay, Measure: unrecordedDays},
	}}
}

// unrecordedDays measures the days whose usage is due and not recorded.
func unrecordedDays(ctx context.Context, tx pg.Tx, now time.Time) (operation.Unfinished, error) {
	day, err := store.FirstUnrecordedDay(ctx, tx)
	if err != nil || day == nil {
		return operation.Unfinished{}, err
	}
	count, age := domain.UnrecordedDays(*day, now)
	return operation.Unfinished{Count: count, Age: age.Seconds()}, nil
}
