package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// screen is the output of a command, which the test reads while the command runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until a line contains all parts, and returns it.
func (s *screen) shows(t *testing.T, parts ...string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for line := range strings.Lines(s.String()) {
			if containsAll(line, parts) {
				return line
			}
		}
	}
	t.Fatalf("no line has %q:\n%s", parts, s)
	return ""
}

func containsAll(line string, parts []string) bool {
	for _, w := range parts {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// execute runs a command to its end, as main does.
func execute(ctx context.Context, cmd *cobra.Command, stdin string, args ...string) (stdout, stderr *screen, err error) {
	stdout, stderr = &screen{}, &screen{}
	return stdout, stderr, executeOn(ctx, cmd, stdin, stdout, stderr, args...)
}

func executeOn(ctx context.Context, cmd *cobra.Command, stdin string, stdout, stderr *screen, args ...string) error {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true // as in libs/service
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd.ExecuteContext(ctx)
}

// fails runs a command that must fail, with a text of one line that contains message.
func fails(t *testing.T, cmd *cobra.Command, message string, args ...string) {
	t.Helper()
	stdout, _, err := execute(t.Context(), cmd, "", args...)
	if err == nil || !strings.Contains(err.Error(), message) || strings.Contains(err.Error(), "\n") || stdout.String() != "" {
		t.Errorf("%s %q: %v\n%s\nwant %s", cmd.Name(), args, err, stdout, message)
	}
}

// The commands read the platform's address from flags, the environment and .run/env, in this order.
func TestWhereCommandsFindThePlatform(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv("BASE_URL", "")
	t.Setenv("DEMO_TEST_KEY", "")
	os.Unsetenv("BASE_URL")
	os.Unsetenv("DEMO_TEST_KEY")
	for _, make := range []func() *cobra.Command{listenCommand, func() *cobra.Command { return one(triggerCommand(), "booking.created") }} {
		fails(t, make(), "set BASE_URL")
		fails(t, make(), "set DEMO_TEST_KEY", "--base-url", "http://127.0.0.1:1/api/v1")
		fails(t, make(), "live mode keys are not allowed", "--base-url", "http://127.0.0.1:1/api/v1", "--key", "svc_live_x")
		fails(t, make(), "not an http or https URL", "--base-url", "127.0.0.1:1", "--key", "svc_test_x")
	}
	api := newAPI(t)
	file := "BASE_URL=" + api.url + "\nDEMO_TEST_KEY=" + testKey + "\n"
	if err := os.Mkdir(filepath.Join(dir, ".run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".run", "env"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t.Context(), triggerCommand(), "", "customer.created"); err != nil {
		t.Error(err)
	}
	t.Setenv("DEMO_TEST_KEY", "svc_test_wrong")
	fails(t, triggerCommand(), "The API key is not valid.", "customer.created")
	if _, _, err := execute(t.Context(), triggerCommand(), "", "customer.created", "--key", testKey); err != nil {
		t.Error(err)
	}
	t.Setenv("DEMO_TEST_KEY", "svc_live_x")
	fails(t, triggerCommand(), "live mode keys are not allowed", "customer.created")
}

// one adds a first argument before those of the test.
func one(cmd *cobra.Command, arg string) *cobra.Command {
	inner := cmd.RunE
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return inner(cmd, []string{arg}) }
	return cmd
}
