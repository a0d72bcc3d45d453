package platform_test

import (
	"context"
	"testing"
	"testing/synctest"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/repair"
)

// TestRepairWaitsForASignal checks that `repair wait` needs no settings, and ends only when its context does.
func TestRepairWaitsForASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		command := platform.RepairCommand(repair.Service{Name: name})
		command.SetArgs([]string{"wait"})
		ended := make(chan error, 1)
		go func() { ended <- command.ExecuteContext(ctx) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it ended before the signal: %v", err)
		default:
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
