package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/pg"
)

// Unfinished is the amount of unfinished work of a kind.
type Unfinished struct {
	Count int
	Age   float64 // of the oldest one, in seconds; 0 if there is none
}

// Measure measures the unfinished work of a kind, for all tenants and modes, in a transaction of the worker role.
type Measure = func(ctx context.Context, tx pg.Tx, real time.Time) (Unfinished, error)

// Backlog contains the metrics of one kind of work.
type Backlog struct {
	Count, Age prometheus.Gauge
	Measure    Measure
}

// Labelled returns the backlog for one label of two metrics.
func Labelled(count, age *prometheus.GaugeVec, label string, measure Measure) Backlog {
	return Backlog{Count: count.WithLabelValues(label), Age: age.WithLabelValues(label), Measure: measure}
}

// Meter measures the amount and the age of unfinished work. Alerts use these metrics.
type Meter struct {
	Worker   *pg.DB // worker role
	Now      func() time.Time
	Backlogs []Backlog
}

// Run measures all backlogs once, in one transaction.
func (m *Meter) Run(ctx context.Context) error {
	return m.Worker.SystemTx(ctx, m.Measure)
}

// Measure is Run in a transaction of the caller.
func (m *Meter) Measure(ctx context.Context, tx pg.Tx) error {
	for _, b := range m.Backlogs {
		left, err := b.Measure(ctx, tx, m.Now())
		if err != nil {
			return fmt.Errorf("measure unfinished work: %w", err)
		}
		b.Count.Set(float64(left.Count))
		b.Age.Set(left.Age)
	}
	return nil
}
