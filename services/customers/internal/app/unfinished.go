package app

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/store"
)

// Unfinished measures how many accepts and conversions wait for a completer and since when, so that an alert can tell.
type Unfinished struct {
	Worker *pg.DB // worker role: counts them
	Now    func() time.Time

	count, age *prometheus.GaugeVec
}

// NewUnfinished makes the metrics and registers them.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *Unfinished {
	a := &Unfinished{Worker: worker, Now: now, count: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished", Help: "Quote acceptances and lead conversions that their first process did not complete, by resource.",
	}, []string{"resource"}), age: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished_oldest_seconds", Help: "Age of the oldest item of chain_unfinished since its first attempt; 0 when there is none.",
	}, []string{"resource"})}
	reg.MustRegister(a.count, a.age)
	return a
}

// Run counts them once.
func (a *Unfinished) Run(ctx context.Context) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		for resource, measure := range map[string]func(ctx context.Context, tx pg.Tx, real time.Time) (store.Unfinished, error){
			"quote": store.UnfinishedAccepts, "lead": store.UnfinishedConversions,
		} {
			left, err := measure(ctx, tx, a.Now())
			if err != nil {
				return fmt.Errorf("count unfinished accepts and conversions: %w", err)
			}
			a.count.WithLabelValues(resource).Set(float64(left.Count))
			a.age.WithLabelValues(resource).Set(left.Age)
		}
		return nil
	})
}
