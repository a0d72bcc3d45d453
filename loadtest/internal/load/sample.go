// Package load sends HTTP requests, as fast as the responses arrive or on a fixed schedule, and records the time of each.
package load

import (
	"math"
	"slices"
	"time"
)

// Sample is the result of one run.
type Sample struct {
	Requests int
	Elapsed  time.Duration
	times    []time.Duration // ascending
}

func newSample(times []time.Duration, elapsed time.Duration) Sample {
	slices.Sort(times)
	return Sample{Requests: len(times), Elapsed: elapsed, times: times}
}

// Join returns the results of several runs as one.
func Join(runs ...Sample) Sample {
	var times []time.Duration
	var elapsed time.Duration
	for _, r := range runs {
		times, elapsed = append(times, r.times...), elapsed+r.Elapsed
	}
	return newSample(times, elapsed)
}

// Rate returns the number of completed requests per second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Requests) / s.Elapsed.Seconds()
}

// Percentile returns the time within which p percent of the requests were completed, by nearest rank, so it is always a measured
// value. It is 0 without requests.
func (s Sample) Percentile(p float64) time.Duration {
	n := len(s.times)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(n)))
	return s.times[min(max(rank, 1), n)-1]
}
