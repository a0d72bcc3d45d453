// Package tests runs the examples against a platform of its own.
package tests

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/scenario/platform"
)

// shared is the platform of all tests, and client calls its API with the test key of the tenant demo.
var (
	shared *platform.Platform
	client *holdfast.Client
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if shared, err = platform.Start("RATE_LIMIT_PER_MINUTE=1000000"); err != nil {
		return platform.Main(err)
	}
	defer shared.Stop()
	client, err = holdfast.New(holdfast.WithBaseURL(shared.Env["BASE_URL"]), holdfast.WithAPIKey(shared.Env["DEMO_TEST_KEY"]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// await waits until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within 40 s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// freePort returns a free port on the loopback address.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// with returns the environment with other variables, and without those that a platform of the developer has set.
func with(variables ...string) []string {
	var all []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "HOLDFAST_") && !strings.HasPrefix(entry, "STRIPE_") {
			all = append(all, entry)
		}
	}
	return append(all, variables...)
}
