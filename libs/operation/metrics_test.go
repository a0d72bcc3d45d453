package operation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
)

// A meter reports the current state of each kind of work, and keeps the metrics of one that it cannot measure.
func TestMeter(t *testing.T) {
	t.Parallel()
	count := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "work", Help: "Work."}, []string{"kind"})
	age := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "work_oldest_seconds", Help: "Age."}, []string{"kind"})
	reg := prometheus.NewRegistry()
	reg.MustRegister(count, age)
	start := time.Now()
	now := start
	var fails error
	since := func(n int, begun time.Time) operation.Measure {
		return func(_ context.Context, _ pg.Tx, real time.Time) (operation.Unfinished, error) {
			return operation.Unfinished{Count: n, Age: real.Sub(begun).Seconds()}, nil
		}
	}
	m := operation.Meter{Now: func() time.Time { return now }, Backlogs: []operation.Backlog{
		operation.Labelled(count, age, "quote", since(2, start)),
		operation.Labelled(count, age, "lead", func(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
			if fails != nil {
				return operation.Unfinished{Count: 7, Age: 7}, fails
			}
			return since(3, start.Add(-time.Minute))(ctx, tx, real)
		}),
	}}
	for _, step := range []struct {
		after time.Duration
		fails error
		want  string // the ages of lead and quote
	}{
		{0, nil, "60 0"}, {time.Minute, nil, "120 60"}, {2 * time.Minute, errBoom, "120 120"}, {3 * time.Minute, nil, "240 180"},
	} {
		now, fails = start.Add(step.after), step.fails
		if err := m.Measure(t.Context(), nil); !errors.Is(err, step.fails) {
			t.Errorf("after %v: %v", step.after, err)
		}
		lead, quote, _ := strings.Cut(step.want, " ")
		want := `# HELP work Work.
# TYPE work gauge
work{kind="lead"} 3
work{kind="quote"} 2
# HELP work_oldest_seconds Age.
# TYPE work_oldest_seconds gauge
work_oldest_seconds{kind="lead"} ` + lead + `
work_oldest_seconds{kind="quote"} ` + quote + "\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Errorf("after %v: %v", step.after, err)
		}
	}
}
