package kafkax_test

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/secret"
)

// Each new connection uses the password that the file contains then.
func TestPasswordFollowsItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	password := secret.New("first")
	password.InFile("KAFKA_SASL_PASSWORD", file)
	cluster, err := kafkax.Settings{SASLMechanism: "plain", SASLUsername: "me", SASLPassword: password}.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	first := func() string {
		_, message, err := cluster.SASL.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(message)
	}
	if got := first(); got != "\x00me\x00first" {
		t.Errorf("the login is %q", got)
	}
	if switched, err := password.Reload(); !switched || err != nil {
		t.Fatal(switched, err)
	}
	if got := first(); got != "\x00me\x00second" {
		t.Errorf("after the change, the login is %q", got)
	}
}
