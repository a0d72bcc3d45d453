// Package report holds the measured figures with their comparisons and targets, and prints them as Markdown.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Row is one figure.
type Row struct {
	Figure   string
	Value    Quantity
	Ours     string // Value as text with more details; empty: Value alone
	Baseline string // the comparison of the same run
	Ratio    float64
	Target   Target
	Show     string // the value of BENCH_ONLY that measures it
	Failed   string // why there is no figure; empty: there is one
}

// Target is a limit for a row's ratio or for its value, in the unit of the value. 0 is no limit.
type Target struct{ MostRatio, LeastRatio, Most, Least float64 }

// target returns the row's target as text, empty without a target, and whether the row misses it.
func (r Row) target() (text string, missed bool) {
	value := func(limit float64) string { return Quantity{limit, r.Value.Unit}.String() }
	t := r.Target
	switch {
	case t.MostRatio > 0:
		return fmt.Sprintf("≤ %.2f ×", t.MostRatio), r.Ratio > t.MostRatio
	case t.LeastRatio > 0:
		return fmt.Sprintf("≥ %.0f %%", 100*t.LeastRatio), r.Ratio < t.LeastRatio
	case t.Most > 0:
		return "≤ " + value(t.Most), r.Value.Value > t.Most
	case t.Least > 0:
		return "≥ " + value(t.Least), r.Value.Value < t.Least
	default:
		return "", false
	}
}

// Ratio returns a / b; 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Table contains all figures of one run.
type Table struct {
	rows  []Row
	notes []string
}

// Add appends a figure.
func (t *Table) Add(r Row) {
	if r.Ours == "" && r.Failed == "" {
		r.Ours = r.Value.String()
	}
	t.rows = append(t.rows, r)
}

// Rows returns the figures that could be measured.
func (t *Table) Rows() []Row {
	return slices.DeleteFunc(slices.Clone(t.rows), func(r Row) bool { return r.Failed != "" })
}

// Failed returns the number of figures that could not be measured.
func (t *Table) Failed() int { return len(t.rows) - len(t.Rows()) }

const longestError = 200 // characters

// Fail appends a figure that could not be measured, with the beginning of the error.
func (t *Table) Fail(figure, show string, err error) {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if cut := []rune(text); len(cut) > longestError {
		text = string(cut[:longestError]) + " …"
	}
	t.Add(Row{Figure: figure, Show: show, Failed: strings.ReplaceAll(text, "|", `\|`)})
}

// Note appends a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Print writes the table in Markdown and then the notes.
func (t *Table) Print(w io.Writer) {
	fmt.Fprintln(w, "| figure | Holdfast | compared with | ratio | target | result | command |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, r := range t.rows {
		ratio, ours, result := "", r.Ours, ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		target, missed := r.target()
		switch {
		case r.Failed != "":
			ours, result = r.Failed, "**failed**"
		case missed:
			result = "**miss**"
		case target != "":
			result = "pass"
		}
		fmt.Fprintf(
			w, "| %s | %s | %s | %s | %s | %s | `BENCH_ONLY=%s make bench` |\n", r.Figure, ours, r.Baseline, ratio, target,
			result, r.Show,
		)
	}
	fmt.Fprintln(w)
	for _, n := range t.notes {
		fmt.Fprintln(w, "- "+n)
	}
}

// Quantity is a measured value with its unit.
type Quantity struct {
	Value float64
	Unit  string // such as "µs" or "/s"
}

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) Quantity { return Quantity{float64(d.Microseconds()) / 1000, "ms"} }

// PerSecond returns a number of requests, or of the like, per second.
func PerSecond(n float64) Quantity { return Quantity{n, "/s"} }

// Rate reports whether a larger value is better, as for a rate. Smaller times, memory and processor use are better.
func (q Quantity) Rate() bool { return strings.HasSuffix(q.Unit, "/s") }

// String formats the value with its unit and as many decimals as the table shows.
func (q Quantity) String() string {
	switch q.Unit {
	case "":
		return fmt.Sprintf("%.2f", q.Value)
	case "/s":
		return fmt.Sprintf("%.0f/s", q.Value)
	case "ms", "cores":
		return fmt.Sprintf("%.2f %s", q.Value, q.Unit)
	case "µs", "MiB", "KiB":
		return fmt.Sprintf("%.1f %s", q.Value, q.Unit)
	default:
		return fmt.Sprintf("%.0f %s", q.Value, q.Unit)
	}
}
