package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Rest(t.Context(), time.Second); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Rest(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
