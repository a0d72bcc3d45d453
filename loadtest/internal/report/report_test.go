package report

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		aim  Aim
		want string
	}{
		{Aim{}, ""},
		{Aim{Text: "≤ 3 ×", Value: 3, AtMost: 3}, "pass"},
		{Aim{Text: "≤ 3 ×", Value: 3.01, AtMost: 3}, "miss"},
		{Aim{Text: "≥ 60 %", Value: 0.6, Least: 0.6}, "pass"},
		{Aim{Text: "≥ 60 %", Value: 0.59, Least: 0.6}, "miss"},
		{Aim{Text: "1", Value: 1, AtMost: 1, Least: 1}, "pass"},
		{Aim{Text: "1", Value: 0.5, AtMost: 1, Least: 1}, "miss"},
	} {
		if got := c.aim.Verdict(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.aim, got, c.want)
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
	table.Add(Row{Figure: "A", Ours: "60 µs", Baseline: "nginx 15 µs", Ratio: 4, Aim: Aim{Text: "≤ 3 ×", Value: 4, AtMost: 3}, Show: "cpu"})
	table.Add(Row{Figure: "B", Ours: Millis(1500 * time.Microsecond), Show: "latency"})
	table.Note("%d cores", 2)
	var all, budgets strings.Builder
	table.Print(&all)
	table.Budgets(&budgets)
	for _, want := range []string{
		"| A | 60 µs | nginx 15 µs | 4.00 | ≤ 3 × | **miss** | `BENCH_ONLY=cpu make bench` |",
		"| B | 1.50 ms |  |  |  |  | `BENCH_ONLY=latency make bench` |", "- 2 cores",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %s in\n%s", want, all.String())
		}
	}
	if got := budgets.String(); !strings.Contains(got, "| A | 4.00 × (60 µs; nginx 15 µs) | ≤ 3 × | **miss** |") || strings.Contains(got, "| B ") {
		t.Errorf("budgets:\n%s", got)
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
		{Microseconds(97.04), "97.0 µs", false},
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
	aim := AtMost(Milliseconds(2300*time.Microsecond), 2.2)
	if aim.Text != "≤ 2.20 ms" || aim.Verdict() != "miss" {
		t.Errorf("%+v", aim)
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
