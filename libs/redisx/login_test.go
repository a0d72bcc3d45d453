package redisx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/redistest"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/secret"
)

// After the file of the URL has changed, new connections use the new user, also when the old one is deleted. Another address is
// rejected, because it requires a restart.
func TestLoginFollowsItsFile(t *testing.T) {
	t.Parallel()
	address := redistest.Server(t, nil)
	admin := openTo(t, address, redisx.Access{})
	for user, password := range map[string]string{"first": "one", "second": "two"} {
		if err := admin.Do(t.Context(), "acl", "setuser", user, "on", ">"+password, "~*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	of := func(login string) string {
		_, host, _ := strings.Cut(address, "@")
		return "redis://" + login + "@" + host
	}
	file := filepath.Join(t.TempDir(), "url")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setting := secret.New(of("first:one"))
	setting.InFile("REDIS_URL", file)
	c, err := redisx.Open(setting.Get(), redisx.Options{Timeout: 5 * time.Second, Login: setting})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	user := func(c redis.UniversalClient) string {
		name, _ := c.Do(t.Context(), "acl", "whoami").Text()
		return name
	}
	if got := user(c); got != "first" {
		t.Fatalf("logged in as %q", got)
	}
	write(of("second:two"))
	if switched, err := setting.Reload(); !switched || err != nil {
		t.Fatal(switched, err)
	}
	if err := admin.Do(t.Context(), "acl", "deluser", "first").Err(); err != nil { // also closes its connections
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); user(c) != "second"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("logged in as %q", user(c))
		}
	}
	for _, bad := range []string{"redis://second:two@elsewhere:1", "redis://second:two@h:port"} {
		write(bad)
		if switched, err := setting.Reload(); switched || err == nil || strings.Contains(err.Error(), "two") {
			t.Errorf("%s: %v, %v", bad, switched, err)
		}
	}
}
