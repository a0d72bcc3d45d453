package report

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row    Row
		text   string
		missed bool
	}{
		{Row{}, "", false},
		{Row{Ratio: 3, Target: Target{MostRatio: 3}}, "≤ 3.00 ×", false},
		{Row{Ratio: 3.01, Target: Target{MostRatio: 3}}, "≤ 3.00 ×", true},
		{Row{Ratio: 0.6, Target: Target{LeastRatio: 0.6}}, "≥ 60 %", false},
		{Row{Ratio: 0.59, Target: Target{LeastRatio: 0.6}}, "≥ 60 %", true},
		{Row{Value: Quantity{2.2, "ms"}, Ratio: 9, Target: Target{Most: 2.2}}, "≤ 2.20 ms", false},
		{Row{Value: Quantity{2.3, "ms"}, Target: Target{Most: 2.2}}, "≤ 2.20 ms", true},
		{Row{Value: PerSecond(1000), Target: Target{Least: 1000}}, "≥ 1000/s", false},
		{Row{Value: PerSecond(999), Target: Target{Least: 1000}}, "≥ 1000/s", true},
	} {
		if text, missed := c.row.target(); text != c.text || missed != c.missed {
			t.Errorf("%+v: %q, missed: %v", c.row, text, missed)
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	if Ratio(6, 4) != 1.5 || Ratio(1, 0) != 0 {
		t.Error(Ratio(6, 4), Ratio(1, 0))
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	var table Table
	table.Add(Row{Figure: "A", Ours: "60 µs", Baseline: "nginx 15 µs", Ratio: 4, Target: Target{MostRatio: 3}, Show: "cpu"})
	table.Add(Row{Figure: "B", Value: Milliseconds(1500 * time.Microsecond), Show: "latency"})
	table.Note("%d cores", 2)
	var all strings.Builder
	table.Print(&all)
	for _, want := range []string{
		"| A | 60 µs | nginx 15 µs | 4.00 | ≤ 3.00 × | **miss** | `BENCH_ONLY=cpu make bench` |",
		"| B | 1.50 ms |  |  |  |  | `BENCH_ONLY=latency make bench` |", "- 2 cores",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %s in\n%s", want, all.String())
		}
	}
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    Quantity
		text string
		rate bool
	}{
		{Milliseconds(1234567 * time.Nanosecond), "1.23 ms", false},
		{Quantity{97.04, "µs"}, "97.0 µs", false},
		{PerSecond(268.7), "269/s", true},
		{Quantity{88614.2, "rows/s"}, "88614 rows/s", true},
		{Quantity{0.0871, "cores"}, "0.09 cores", false},
		{Quantity{15.96, "KiB"}, "16.0 KiB", false},
		{Quantity{Value: 1}, "1.00", false},
	} {
		if c.q.String() != c.text || c.q.Rate() != c.rate {
			t.Errorf("%+v is %s, a rate: %v", c.q, c.q, c.q.Rate())
		}
	}
}

func TestRowsAreTheMeasuredFigures(t *testing.T) {
	t.Parallel()
	var table Table
	table.Add(Row{Figure: "A", Value: PerSecond(5)})
	table.Fail("B", "cpu", io.ErrUnexpectedEOF)
	if got := table.Rows(); len(got) != 1 || got[0].Ours != "5/s" {
		t.Errorf("%+v", got)
	}
}
