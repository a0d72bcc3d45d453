// Package history stores the figures of benchmark runs in a CSV file, and compares a run with the earlier ones.
package history

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"holdfast.dev/loadtest/internal/report"
)

// Entry is one figure of one run.
type Entry struct {
	Date      string // YYYY-MM-DD
	Commit    string
	Figure    string
	Value     report.Quantity
	Yardstick string  // the comparison of the same run, as text
	Ratio     float64 // to the yardstick; 0: none
}

var header = []string{"date", "commit", "figure", "value", "unit", "yardstick", "ratio"}

// Entries returns the entries of a run's figures.
func Entries(date, commit string, rows []report.Row) []Entry {
	var all []Entry
	for _, r := range rows {
		all = append(all, Entry{Date: date, Commit: commit, Figure: r.Figure, Value: r.Value, Yardstick: r.Baseline, Ratio: r.Ratio})
	}
	return all
}

// Read returns the entries of a file in the order of the runs. A file that does not exist has none.
func Read(path string) ([]Entry, error) {
	f, err := os.Open(path) //nolint:gosec // the caller's own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in := csv.NewReader(f)
	in.FieldsPerRecord = len(header)
	var all []Entry
	for line := 1; ; line++ {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		if line == 1 {
			continue
		}
		e, err := parse(fields)
		if err != nil {
			return nil, fmt.Errorf("history: %s: %w", path, err)
		}
		all = append(all, e)
	}
}

func parse(fields []string) (e Entry, err error) {
	e = Entry{Date: fields[0], Commit: fields[1], Figure: fields[2], Value: report.Quantity{Unit: fields[4]}, Yardstick: fields[5]}
	if e.Value.Value, err = strconv.ParseFloat(fields[3], 64); err != nil || fields[6] == "" {
		return e, err
	}
	e.Ratio, err = strconv.ParseFloat(fields[6], 64)
	return e, err
}

// Append adds entries to a file. A new file begins with the names of the columns.
func Append(path string, entries []Entry) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	out := csv.NewWriter(f)
	if info.Size() == 0 {
		_ = out.Write(header) // Error returns it
	}
	for _, e := range entries {
		ratio := ""
		if e.Ratio > 0 {
			ratio = number(e.Ratio)
		}
		_ = out.Write([]string{e.Date, e.Commit, e.Figure, number(e.Value.Value), e.Value.Unit, e.Yardstick, ratio})
	}
	out.Flush()
	return out.Error()
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', 3, 64) }

const (
	compared  = 5   // runs of a figure
	tolerance = 0.1 // of the best ratio
)

// Regressions describes the figures whose ratio is more than a tenth worse than the best of the figure's last runs. A figure without
// a ratio is not compared, because times of different runs are not comparable.
func Regressions(past, now []Entry) []string {
	var all []string
	for _, e := range now {
		best, runs := best(past, e)
		if e.Ratio <= 0 || runs == 0 {
			continue
		}
		worse := e.Ratio > best*(1+tolerance)
		if e.Value.Rate() {
			worse = e.Ratio < best*(1-tolerance)
		}
		if worse {
			all = append(all, fmt.Sprintf("%s: the ratio %.2f is more than %.0f %% worse than %.2f, the best of the last %d runs",
				e.Figure, e.Ratio, 100*tolerance, best, runs))
		}
	}
	return all
}

// best returns the best ratio of the last runs of a figure, and how many runs these are.
func best(past []Entry, of Entry) (ratio float64, runs int) {
	for i := len(past) - 1; i >= 0 && runs < compared; i-- {
		if past[i].Figure != of.Figure || past[i].Ratio <= 0 {
			continue
		}
		switch {
		case runs == 0:
			ratio = past[i].Ratio
		case of.Value.Rate():
			ratio = max(ratio, past[i].Ratio)
		default:
			ratio = min(ratio, past[i].Ratio)
		}
		runs++
	}
	return ratio, runs
}
