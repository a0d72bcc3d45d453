package quota

import (
	"context"
	"time"
)

// restFactor is the duration of a rest relative to the preceding work.
const restFactor = 2

// Rest waits for twice as long as a part of some work took, at most until ctx ends. Work that rests after each part uses at most a
// third of a processor, here and at the database, and less if other work slows it down. Slots with Limits.Rests do the same between
// pieces of work that have one response.
func Rest(ctx context.Context, took time.Duration) error {
	timer := time.NewTimer(restFactor * took)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
