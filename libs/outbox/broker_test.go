package outbox_test

import (
	"net"
	"os"
	"testing"
	"time"

	"holdfast.dev/libs/kafkatest"
)

// One of three brokers is killed under load, or its disk becomes full. Every event arrives, and those of each object in order, while
// the broker is away. Nothing is restarted.
func TestABrokerFails(t *testing.T) {
	if os.Getenv("TEST_FAILOVER") == "" {
		t.Skip("three brokers take longer than a test may: run `make failover`")
	}
	for name, disk := range map[string]int{"killed": 0, "full disk": 24 << 20} {
		t.Run(name, func(t *testing.T) {
			kafka := kafkatest.StartThree(t, disk)
			db, got, _ := streamThrough(t, kafka.Brokers)
			stop := load(t, db)
			await(t, "events before", func() bool { return got.sum() > 5*objects })
			failed := time.Now()
			if disk > 0 {
				kafka.Fill()
			} else {
				kafka.Kill(2)
			}
			var longest time.Duration // without an event
			last, at := got.sum(), time.Now()
			for time.Since(failed) < 15*time.Second {
				if now := got.sum(); now > last {
					longest, last, at = max(longest, time.Since(at)), now, time.Now()
				}
				time.Sleep(10 * time.Millisecond)
			}
			total := stop()
			if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", kafka.Brokers[2]); err == nil {
				_ = conn.Close()
				t.Error("the broker still listens: the test shows nothing")
			}
			awaitLong(t, "all events", func() bool { return got.sum() == total && left(t, db) == 0 })
			if len(got.faults) > 0 {
				t.Errorf("%d events overtook others: %v", len(got.faults), got.faults[:min(3, len(got.faults))])
			}
			t.Logf("%d events, the longest pause %v", total, longest.Round(time.Millisecond))
		})
	}
}

// awaitLong waits for a client that finds its brokers again.
func awaitLong(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
