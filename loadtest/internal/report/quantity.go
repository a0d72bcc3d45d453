package report

import (
	"fmt"
	"strings"
	"time"
)

// Quantity is a measured value with its unit.
type Quantity struct {
	Value float64
	Unit  string // such as "µs" or "/s"
}

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) Quantity {
	return Quantity{float64(d.Microseconds()) / 1000, "ms"}
}

// Microseconds returns a number of microseconds.
func Microseconds(n float64) Quantity { return Quantity{n, "µs"} }

// PerSecond returns a number of requests, or of the like, per second.
func PerSecond(n float64) Quantity { return Quantity{n, "/s"} }

// Rate reports whether a larger value is better, as for a rate. Smaller times, memory and processor use are better.
func (q Quantity) Rate() bool { return strings.HasSuffix(q.Unit, "/s") }

// String formats the value with its unit and as many decimals as the table shows.
func (q Quantity) String() string {
	switch q.Unit {
	case "":
		return fmt.Sprintf("%.2f", q.Value)
	case "/s":
		return fmt.Sprintf("%.0f/s", q.Value)
	case "ms", "cores":
		return fmt.Sprintf("%.2f %s", q.Value, q.Unit)
	case "µs", "MiB", "KiB":
		return fmt.Sprintf("%.1f %s", q.Value, q.Unit)
	default:
		return fmt.Sprintf("%.0f %s", q.Value, q.Unit)
	}
}
