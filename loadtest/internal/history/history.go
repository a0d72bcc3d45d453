// Package history stores the figures of benchmark runs in a CSV file, and compares a run with the earlier ones.
package history

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"holdfast.dev/loadtest/internal/report"
)

// A line of the file has the date, commit, figure, value, unit, comparison of the same run, and ratio, which is empty
// without a comparison.
const (
	figureColumn = 2
	ratioColumn  = 6
)

// Ratios are the ratios of each figure, in the order of the runs.
type Ratios map[string][]float64

// Read returns the ratios in a file.
func Read(path string) (Ratios, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	all := Ratios{}
	for _, line := range lines[min(1, len(lines)):] { // after the names of the columns
		if line[ratioColumn] != "" {
			ratio, malformed := strconv.ParseFloat(line[ratioColumn], 64)
			all[line[figureColumn]], err = append(all[line[figureColumn]], ratio), errors.Join(err, malformed)
		}
	}
	return all, err
}

// Append adds the figures of a run to a file. date is YYYY-MM-DD.
func Append(path, date, commit string, rows []report.Row) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := csv.NewWriter(f)
	for _, r := range rows {
		ratio := ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.3f", r.Ratio)
		}
		value := fmt.Sprintf("%.3f", r.Value.Value)
		_ = out.Write([]string{date, commit, r.Figure, value, r.Value.Unit, r.Baseline, ratio}) // Error returns its error
	}
	out.Flush()
	return out.Error()
}

const (
	compared  = 5   // runs of a figure
	tolerance = 0.1 // of the best ratio
)

// Regressions describes the figures whose ratio is more than a tenth worse than the best of the figure's last runs. A
// figure without a ratio is not compared, because times of different runs are not comparable.
func Regressions(past Ratios, rows []report.Row) []string {
	var all []string
	for _, r := range rows {
		last := past[r.Figure]
		last = last[max(0, len(last)-compared):]
		if r.Ratio <= 0 || len(last) == 0 {
			continue
		}
		best := slices.Min(last)
		worse := r.Ratio > best*(1+tolerance)
		if r.Value.Rate() {
			best = slices.Max(last)
			worse = r.Ratio < best*(1-tolerance)
		}
		if worse {
			const text = "%s: the ratio %.2f is more than %.0f %% worse than %.2f, the best of the last %d runs"
			all = append(all, fmt.Sprintf(text, r.Figure, r.Ratio, 100*tolerance, best, len(last)))
		}
	}
	return all
}
