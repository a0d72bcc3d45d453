package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// The aims: the smallest share of the direct rate that a service may reach through a pooler, and the most processor time, as a multiple of the
// direct one.
const (
	leastPooled    = 0.95
	mostPooledTime = 1.05
)

// pooledRepeats is how often a round measures both sides: the rate of one side differs more between slices than it may between the sides.
const pooledRepeats = 2

// pooledService is the service that runs a second time, behind a pooler.
const pooledService = "bookings"

// pooledSlots is the first slot of the bookings, after those of the other figures.
const pooledSlots = units * 365 * 100

// pooler compares reads and writes of bookings through a pooler with those of the platform's own process, which connects directly.
func (b *bench) pooler(ctx context.Context, s *shop) error {
	addr, err := b.platform.Pooled(ctx, pooledService)
	if errors.Is(err, stack.ErrMissing) {
		b.table.Note("the pooler was not measured: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name, figure string
		status       int
		nth          func(side, n int) []byte
	}{
		{"GET /bookings/{id}", "`GET /bookings/{id}` through PgBouncer", http.StatusOK, func(_, n int) []byte {
			id := ids.FromUUID[bookingPrefix](rowUUID(n%smallList + 1)).String()
			return load.Request(http.MethodGet, "/api/v1/bookings/"+id, s.headers(s.live, ""), "")
		}},
		{"POST /bookings", "`POST /bookings` with Idempotency-Key through PgBouncer", http.StatusCreated, func(side, n int) []byte {
			slot := pooledSlots + 2*n + side // no slot is booked twice
			return load.Request(http.MethodPost, "/api/v1/bookings", s.headers(s.key, fmt.Sprintf("pooler-%d", slot)), nthBooking(s, slot))
		}},
	} {
		var sides [2]*served
		for i, at := range []string{s.addr, addr} {
			sides[i] = &served{
				name:   fmt.Sprintf("%s, %s", one.name, []string{"direct", "through PgBouncer"}[i]),
				target: load.Target{Addr: at, Nth: func(n int) []byte { return one.nth(i, n) }, Status: one.status},
			}
		}
		direct, pooled := b.serve(ctx, sides[0]), b.serve(ctx, sides[1])
		balanced := []func(int) error{direct, pooled, pooled, direct} // neither side always follows the other
		if err := runRounds(slices.Repeat(balanced, pooledRepeats)...); err != nil {
			return err
		}
		directRate, pooledRate := sides[0].Rate(), sides[1].Rate()
		ratio := report.Ratio(pooledRate, directRate)
		b.table.Add(report.Row{
			Figure: one.figure, Value: report.PerSecond(pooledRate), Baseline: fmt.Sprintf("direct: %.0f/s", directRate), Ratio: ratio,
			Aim: report.Aim{Text: fmt.Sprintf("≥ %.0f %%", 100*leastPooled), Value: ratio, Least: leastPooled}, Show: "pooler",
		})
		b.table.Add(pooledCost(one.figure, sides))
		b.noteCosts(sides[0])
		b.noteCosts(sides[1])
	}
	return nil
}

// pooledCost compares the processor time per request of all processes. It also shows that of the pooler.
func pooledCost(figure string, sides [2]*served) report.Row {
	direct, pooled := perRequest(sides[0].used.platform(), sides[0].Requests), perRequest(sides[1].used.platform(), sides[1].Requests)
	own := perRequest(sides[1].used[stack.PgBouncer], sides[1].Requests)
	ratio := report.Ratio(pooled.Value, direct.Value)
	return report.Row{
		Figure: figure + ": CPU time of all processes", Value: pooled, Ours: fmt.Sprintf("%s (PgBouncer %s)", pooled, own),
		Baseline: "direct: " + direct.String(), Ratio: ratio,
		Aim: report.Aim{Text: fmt.Sprintf("≤ %.2f ×", mostPooledTime), Value: ratio, AtMost: mostPooledTime}, Show: "pooler",
	}
}
