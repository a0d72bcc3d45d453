package stack

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
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
	ends := kadm.ListedOffsets{"a": {0: {Offset: 30}, 1: {Offset: 8}}, "b": {0: {Offset: 7}}}
	committed := kadm.OffsetResponses{"a": {0: {Offset: kadm.Offset{At: 28}}}} // of partition 1, nothing was processed yet
	if got := lag([]string{"a"}, ends, committed); got != 2+8 {
		t.Errorf("%d messages", got)
	}
	committed["a"][0], committed["a"][1] = kadm.OffsetResponse{Offset: kadm.Offset{At: 30}}, kadm.OffsetResponse{Offset: kadm.Offset{At: 8}}
	if got := lag([]string{"a"}, ends, committed); got != 0 {
		t.Errorf("%d messages, want 0", got)
	}
}
