package stack

import (
	"strings"
	"testing"
)

func TestPoolerConnectsToTheSocketOrThePort(t *testing.T) {
	t.Parallel()
	for sockets, want := range map[string]string{
		"":         "app = host=127.0.0.1 port=5501 dbname=holdfast_bookings user=app password=secret",
		"/sockets": "app = host=/sockets port=5501 dbname=holdfast_bookings user=app password=secret",
	} {
		text, err := poolerConfig("127.0.0.1:6432", sockets, map[string]string{"app": "postgres://app:secret@127.0.0.1:5501/holdfast_bookings"})
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(text, "\n"); lines[1] != want {
			t.Errorf("sockets in %q: %s", sockets, lines[1])
		}
	}
}
