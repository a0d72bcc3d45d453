package stack

import (
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"
)

func TestMovedServerHasTheSameSettings(t *testing.T) {
	t.Parallel()
	s := server{data: "/data/postgres", args: []string{"-D", "/data/postgres", "-c", "listen_addresses=127.0.0.1", "-c", "port=5501", "-c", "shared_buffers=256MB"}}
	got, err := s.moved("/data/yardstick", "127.0.0.1:6602")
	want := []string{"-D", "/data/yardstick", "-c", "listen_addresses=127.0.0.1", "-c", "port=6602", "-c", "shared_buffers=256MB"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if s.args[1] != "/data/postgres" {
		t.Error("the arguments of the original have changed")
	}
	if _, err := (server{data: "/data", args: []string{"-D", "/data"}}).moved("/other", "127.0.0.1:1"); err == nil {
		t.Error("a server without a port would get the original's port")
	}
}

func TestURLOfTheCopy(t *testing.T) {
	t.Parallel()
	y := &Yardstick{addr: "127.0.0.1:6602"}
	const original = "postgres://app:secret@127.0.0.1:5501/holdfast_bookings?sslmode=disable"
	if got := y.URL(original); got != "postgres://app:secret@127.0.0.1:6602/holdfast_bookings?sslmode=disable" {
		t.Error(got)
	}
	got, err := inDatabase("postgres://postgres:root@127.0.0.1:5501/postgres?sslmode=disable", original)
	if err != nil || got != "postgres://postgres:root@127.0.0.1:5501/holdfast_bookings?sslmode=disable" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestDatabaseOfServerProcesses(t *testing.T) {
	t.Parallel()
	databases := []string{"holdfast_bookings", "holdfast_customers"}
	for title, want := range map[string]string{
		"postgres: holdfast_bookings_app holdfast_bookings 127.0.0.1(41234) idle\x00\x00\x00":         "holdfast_bookings",
		"postgres: holdfast_customers_worker holdfast_customers 127.0.0.1(41234) idle in transaction": "holdfast_customers",
		"postgres: autovacuum worker holdfast_bookings":                                               "holdfast_bookings",
		"postgres: postgres postgres 127.0.0.1(41234) idle":                                           "",
		"postgres: walwriter ": "",
		"":                     "",
	} {
		if got := databaseOf(title, databases); got != want {
			t.Errorf("%q serves %q, want %q", title, got, want)
		}
	}
}

func TestLagCountsUnprocessedMessages(t *testing.T) {
	t.Parallel()
	bounds := map[string][]kafka.PartitionOffsets{
		"a": {{Partition: 0, FirstOffset: 10, LastOffset: 30}, {Partition: 1, FirstOffset: 5, LastOffset: 8}},
		"b": {{Partition: 0, FirstOffset: 0, LastOffset: 7}},
	}
	done := map[string][]kafka.OffsetFetchPartition{
		"a": {{Partition: 0, CommittedOffset: 28}, {Partition: 1, CommittedOffset: -1}}, // nothing was committed yet
	}
	if got := lag(bounds, done); got != 2+3 {
		t.Errorf("%d messages", got)
	}
	done["a"][0].CommittedOffset, done["a"][1].CommittedOffset = 30, 8
	if got := lag(bounds, done); got != 0 {
		t.Errorf("%d messages, want 0", got)
	}
}
