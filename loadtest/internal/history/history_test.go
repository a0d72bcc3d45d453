package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/loadtest/internal/report"
)

func entry(figure, unit string, ratio float64) Entry {
	return Entry{Figure: figure, Value: report.Quantity{Value: 100, Unit: unit}, Ratio: ratio}
}

func TestRegressionsCompareWithTheBestOfFiveRuns(t *testing.T) {
	t.Parallel()
	var past []Entry
	for _, ratio := range []float64{9, 0.5, 0.4, 0.45, 0.42, 0.41} { // the first run is too old
		past = append(past, entry("rate", "/s", ratio), entry("time", "µs", 10*ratio), entry("another", "/s", 9))
	}
	for _, c := range []struct {
		figure, unit string
		ratio        float64
		worse        bool
	}{
		{"rate", "/s", 0.44, true},    // the best is 0.5
		{"rate", "/s", 0.46, false},   // less than a tenth worse
		{"rate", "/s", 0.9, false},    // better
		{"time", "µs", 4.41, true},    // the best is 4
		{"time", "µs", 4.39, false},   // less than a tenth worse
		{"time", "µs", 1, false},      // better
		{"new", "/s", 0.001, false},   // no earlier run
		{"rate", "/s", 0, false},      // no ratio
		{"rate", "rows/s", 0.1, true}, // also a rate
	} {
		got := Regressions(past, []Entry{entry(c.figure, c.unit, c.ratio)})
		if len(got) == 1 != c.worse {
			t.Errorf("%s %v: %q", c.figure, c.ratio, got)
		}
	}
	got := Regressions(past, []Entry{entry("rate", "/s", 0.3)})
	if want := "rate: the ratio 0.30 is more than 10 % worse than 0.50, the best of the last 5 runs"; !slices.Equal(got, []string{want}) {
		t.Errorf("%q", got)
	}
}

// TestRegressionsSkipRunsWithoutTheFigure checks that a run that measured other figures does not count as one of the last five.
func TestRegressionsSkipRunsWithoutTheFigure(t *testing.T) {
	t.Parallel()
	past := []Entry{entry("a", "/s", 0.5)}
	for range 20 {
		past = append(past, entry("b", "/s", 0.1), entry("a", "/s", 0))
	}
	if got := Regressions(past, []Entry{entry("a", "/s", 0.2)}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestAppendThenReadReturnsTheSame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.csv")
	if got, err := Read(path); err != nil || got != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	rows := []report.Row{
		{Figure: "`POST /a`, \"quoted\"", Value: report.PerSecond(269.125), Baseline: "pgbench: 851/s", Ratio: 0.316},
		{Figure: "memory", Value: report.Quantity{Value: 12.5, Unit: "KiB"}},
	}
	first, second := Entries("2026-11-27", "0123456789ab", rows), Entries("2026-11-28", "ba9876543210", rows[:1])
	for _, entries := range [][]Entry{first, second} {
		if err := Append(path, entries); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if err != nil || !slices.Equal(got, append(first, second...)) {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "date,commit,figure,value,unit,yardstick,ratio\n") != 1 || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestReadReportsMalformedFiles(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"a,b,c", "d,c,f,no number,ms,y,1", "d,c,f,1,ms,y,no number"} {
		path := filepath.Join(t.TempDir(), "history.csv")
		if err := os.WriteFile(path, []byte(strings.Join(header, ",")+"\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); err == nil {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

// TestStoredHistoryCanBeRead checks the file of this checkout.
func TestStoredHistoryCanBeRead(t *testing.T) {
	t.Parallel()
	if _, err := Read(filepath.Join("..", "..", "history.csv")); err != nil {
		t.Error(err)
	}
}
