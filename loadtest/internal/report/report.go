// Package report holds the measured figures with their comparisons and aims, and prints them as Markdown.
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
	Aim      Aim
	Show     string // the value of BENCH_ONLY that measures it
	Failed   string // why there is no figure; empty: there is one
}

// Aim is a limit for the ratio, or for a value in the same unit as Value.
type Aim struct {
	Text   string // "≤ 3 ×"; empty: no aim
	Value  float64
	AtMost float64 // 0: no such limit
	Least  float64
}

// Verdict returns "pass" or "miss"; empty without an aim.
func (a Aim) Verdict() string {
	switch {
	case a.Text == "":
		return ""
	case a.AtMost > 0 && a.Value > a.AtMost, a.Value < a.Least:
		return "miss"
	default:
		return "pass"
	}
}

// Ratio returns a / b; 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// AtMost returns the aim that a value does not exceed a limit in its unit.
func AtMost(q Quantity, limit float64) Aim {
	return Aim{Text: "≤ " + Quantity{limit, q.Unit}.String(), Value: q.Value, AtMost: limit}
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

// Fail appends a figure that could not be measured, with the beginning of the error.
func (t *Table) Fail(figure, show string, err error) {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if cut := []rune(text); len(cut) > longestError {
		text = string(cut[:longestError]) + " …"
	}
	t.Add(Row{Figure: figure, Show: show, Failed: strings.ReplaceAll(text, "|", `\|`)})
}

const longestError = 200 // characters

// Failed returns the number of figures that could not be measured.
func (t *Table) Failed() int {
	n := 0
	for _, r := range t.rows {
		if r.Failed != "" {
			n++
		}
	}
	return n
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
		if r.Failed != "" {
			fmt.Fprintf(w, "| %s | %s |  |  |  | **failed** | `BENCH_ONLY=%s make bench` |\n", r.Figure, r.Failed, r.Show)
			continue
		}
		ratio := ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | `BENCH_ONLY=%s make bench` |\n",
			r.Figure, r.Ours, r.Baseline, ratio, r.Aim.Text, strong(r.Aim.Verdict()), r.Show)
	}
	fmt.Fprintln(w)
	for _, n := range t.notes {
		fmt.Fprintln(w, "- "+n)
	}
}

// Budgets writes only the figures with an aim.
func (t *Table) Budgets(w io.Writer) {
	fmt.Fprintln(w, "| budget | measured | target | result |\n|---|---|---|---|")
	for _, r := range t.rows {
		if r.Failed != "" {
			fmt.Fprintf(w, "| %s | %s |  | **failed** |\n", r.Figure, r.Failed)
		}
		if r.Aim.Text == "" {
			continue
		}
		measured := r.Ours
		if r.Ratio > 0 {
			measured = fmt.Sprintf("%.2f × (%s; %s)", r.Ratio, r.Ours, r.Baseline)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.Figure, measured, r.Aim.Text, strong(r.Aim.Verdict()))
	}
}

func strong(verdict string) string {
	if verdict == "miss" {
		return "**miss**"
	}
	return verdict
}

// Millis formats a duration in milliseconds with two decimals.
func Millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
