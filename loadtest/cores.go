package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// predicted is the smallest share of a predicted rate that still counts as predicted.
const predicted = 0.75

// cores checks the model of docs/scale.md: the rate on one processor and on two follows from the processor time of a request. All
// processes, and the load generator, share the processors.
func (b *bench) cores(ctx context.Context, s *shop) error {
	if runtime.NumCPU() < 2 {
		b.table.Note("cores were not measured: the machine has one processor")
		return nil
	}
	for _, one := range []struct {
		name   string
		target load.Target
	}{
		{"GET /bookings/{id}", load.Target{Status: http.StatusOK, Nth: func(n int) []byte {
			id := ids.FromUUID[bookingPrefix](rowUUID(n%smallList + 1)).String()
			return load.Request(http.MethodGet, "/api/v1/bookings/"+id, s.headers(s.live, ""), "")
		}}},
		{"POST /bookings", load.Target{Status: http.StatusCreated, Nth: func(n int) []byte {
			n += coreBookings
			return load.Request(http.MethodPost, "/api/v1/bookings", s.headers(s.key, fmt.Sprintf("bench-cores-%d", n)), nthBooking(s, n))
		}}},
	} {
		one.target.Addr = s.addr
		ours := &served{name: one.name, target: one.target}
		for _, processors := range []int{1, 2} {
			if err := b.onProcessors(ctx, ours, processors); err != nil {
				return err
			}
		}
	}
	return nil
}

// coreBookings is the number of the first slot that cores books, after those of create.
const coreBookings = 2_000_000

// onProcessors measures the rate on the given number of processors, and predicts it from the processor time per request.
func (b *bench) onProcessors(ctx context.Context, s *served, processors int) (err error) {
	if err := b.pin(processors); err != nil {
		return err
	}
	defer func() {
		if unpinned := b.pin(runtime.NumCPU()); err == nil {
			err = unpinned
		}
	}()
	s.used, s.Sample = usage{}, load.Sample{}
	for round := range rounds {
		if err := b.serve(ctx, s)(round); err != nil {
			return err
		}
	}
	all := s.used.platform() + s.used["loadtest"]
	expected := float64(processors) * float64(s.Requests) / all.Seconds()
	ratio := report.Ratio(s.Rate(), expected)
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`%s`, all processes on %d of the processors", s.name, processors), Value: report.PerSecond(s.Rate()),
		Baseline: fmt.Sprintf("predicted from %s of CPU time: %.0f/s", perRequest(all, s.Requests), expected), Ratio: ratio,
		Aim: report.Aim{Text: fmt.Sprintf("≥ %.0f %%", 100*predicted), Value: ratio, Least: predicted}, Show: "cores",
	})
	return nil
}

// pin limits all processes of the platform and this one to the first processors.
func (b *bench) pin(processors int) error {
	files, err := filepath.Glob(filepath.Join(b.platform.Dir, ".run", "pids", "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		pid, err := b.platform.PID(filepath.Base(file))
		if err != nil {
			return err
		}
		if err := stack.Pin(pid, processors); err != nil {
			return err
		}
	}
	if err := stack.Pin(os.Getpid(), processors); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // the kernel moves running threads
	return nil
}
