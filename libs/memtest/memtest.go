// Package memtest runs work under a memory limit, as a container does, and measures the heap.
package memtest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const lookEvery = 2 * time.Millisecond

// Under runs work with limit as the process's soft memory limit, and fails the test when the live heap exceeds limit at
// any time. It returns the largest live heap in bytes. No other test of the process may run at the same time.
//
// The live heap is what the last garbage collection left. Memory that work keeps beyond the limit makes collections run until the
// end, so that one of them counts it.
func Under(t testing.TB, limit int64, work func()) int64 {
	t.Helper()
	before := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(before)
	runtime.GC() // what earlier tests left is not counted
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			most = max(most, live())
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(lookEvery):
			}
		}
	}()
	work()
	close(stop)
	most := <-peak
	t.Logf("at most %.1f MiB lived on the heap", float64(most)/(1<<20))
	if most > limit {
		t.Errorf("%d bytes lived on the heap under a limit of %d", most, limit)
	}
	return most
}

// live returns the bytes that the last garbage collection left.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
