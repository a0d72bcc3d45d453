package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/pg"
)

// Unfinished is how much work of a kind is not finished.
type Unfinished struct {
	Count int
	Age   float64 // of the oldest one, in seconds; 0 when there is none
}

// Measure measures the work of a kind, of all tenants and modes, in a transaction of the worker role.
type Measure = func(ctx context.Context, tx pg.Tx, real time.Time) (Unfinished, error)

// Backlog is the metrics of one kind of work.
type Backlog struct {
	Count, Age prometheus.Gauge
	Measure    Measure
}

// Labelled is the backlog that a label of two metrics names.
func Labelled(count, age *prometheus.GaugeVec, label string, measure Measure) Backlog {
	return Backlog{Count: count.WithLabelValues(label), Age: age.WithLabelValues(label), Measure: measure}
}

// Meter measures how much work is unfinished and since when. Alerts use these metrics.
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
