// Package history stores the figures of benchmark runs in a CSV file, and compares a run with the earlier ones.
package history

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"holdfast.dev/loadtest/internal/report"
)

// The columns of the file are date, commit, figure, value, unit, yardstick, and ratio. The yardstick is the comparison of the same
// run. A figure without a comparison has no ratio.
const (
	figureColumn = 2
	ratioColumn  = 6
)

// Ratios are the ratios of each figure, in the order of the runs.
type Ratios map[string][]float64

// Read returns the ratios in a file.
func Read(path string) (Ratios, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	all := Ratios{}
	for _, record := range records[min(1, len(records)):] { // after the names of the columns
		if record[ratioColumn] == "" {
			continue
		}
		ratio, err := strconv.ParseFloat(record[ratioColumn], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[record[figureColumn]] = append(all[record[figureColumn]], ratio)
	}
	return all, nil
}

// Append adds the figures of a run to a file. date is YYYY-MM-DD.
func Append(path, date, commit string, rows []report.Row) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := csv.NewWriter(f)
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', 3, 64) }
	for _, r := range rows {
		ratio := ""
		if r.Ratio > 0 {
			ratio = number(r.Ratio)
		}
		_ = out.Write([]string{date, commit, r.Figure, number(r.Value.Value), r.Value.Unit, r.Baseline, ratio}) // Error returns its error
	}
	out.Flush()
	return out.Error()
}

const (
	compared  = 5   // runs of a figure
	tolerance = 0.1 // of the best ratio
)

// Regressions describes the figures whose ratio is more than a tenth worse than the best of the figure's last runs. A figure without
// a ratio is not compared, because times of different runs are not comparable.
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
			all = append(all, fmt.Sprintf("%s: the ratio %.2f is more than %.0f %% worse than %.2f, the best of the last %d runs",
				r.Figure, r.Ratio, 100*tolerance, best, len(last)))
		}
	}
	return all
}
