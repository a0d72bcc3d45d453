package history

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"holdfast.dev/loadtest/internal/report"
)

func row(figure, unit string, ratio float64) report.Row {
	return report.Row{Figure: figure, Value: report.Quantity{Value: 100, Unit: unit}, Ratio: ratio}
}

func TestRegressionsCompareWithTheBestOfFiveRuns(t *testing.T) {
	t.Parallel()
	past := Ratios{"rate": {9, 0.5, 0.4, 0.45, 0.42, 0.41}, "time": {0.1, 5, 4, 4.5, 4.2, 4.1}} // the first run is too old
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
		if got := Regressions(past, []report.Row{row(c.figure, c.unit, c.ratio)}); len(got) == 1 != c.worse {
			t.Errorf("%s %v: %q", c.figure, c.ratio, got)
		}
	}
	got := Regressions(past, []report.Row{row("rate", "/s", 0.3)})
	if want := "rate: the ratio 0.30 is more than 10 % worse than 0.50, the best of the last 5 runs"; !slices.Equal(got, []string{want}) {
		t.Errorf("%q", got)
	}
}

const header = "date,commit,figure,value,unit,yardstick,ratio\n"

func TestAppendedRatiosCanBeRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.csv")
	if err := os.WriteFile(path, []byte(header), 0o600); err != nil {
		t.Fatal(err)
	}
	quoted := report.Row{Figure: "`POST /a`, \"quoted\"", Value: report.PerSecond(269.125), Baseline: "pgbench: 851/s", Ratio: 0.316}
	for _, rows := range [][]report.Row{{quoted, row("memory", "KiB", 0)}, {quoted}} {
		if err := Append(path, "2026-11-27", "0123456789ab", rows); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if want := (Ratios{quoted.Figure: {0.316, 0.316}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	const line = "2026-11-27,0123456789ab,\"`POST /a`, \"\"quoted\"\"\",269.125,/s,pgbench: 851/s,0.316\n"
	if want := header + line + "2026-11-27,0123456789ab,memory,100.000,KiB,,\n" + line; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestReadReportsMalformedFiles(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"a,b,c", "d,c,f,1,ms,y,no number"} {
		path := filepath.Join(t.TempDir(), "history.csv")
		if err := os.WriteFile(path, []byte(header+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); err == nil {
			t.Errorf("%q is read as %v", line, got)
		}
	}
}

// TestStoredHistoryCanBeRead checks the file of this checkout.
func TestStoredHistoryCanBeRead(t *testing.T) {
	t.Parallel()
	const path = "../../history.csv"
	if _, err := Read(path); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text[:len(header)]) != header {
		t.Errorf("%.100s, %v", text, err)
	}
}
