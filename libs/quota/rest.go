package quota

import (
	"context"
	"time"
)

// restFactor is how many times as long as the work before it a rest is.
const restFactor = 2

// Rest waits for twice as long as a part of some work took, at most until ctx ends. Work that rests after each of its parts keeps a third
// of a processor busy at most, here and at the database, and less where the work of others makes its parts slow. Slots whose limits say
// Rests do the same between pieces of work that have one response.
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
