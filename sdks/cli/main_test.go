package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/sdks/scenario/platform"
)

// shared is the platform of all tests, and binary is the command line.
var (
	shared *platform.Platform
	binary string
)

func TestMain(m *testing.M) {
	code := func() int {
		folder, err := os.MkdirTemp("", "holdfast-cli-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(folder) }()
		binary = filepath.Join(folder, "holdfast")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		if shared, err = platform.Start("RATE_LIMIT_PER_MINUTE=100000"); err != nil {
			return platform.Main(err)
		}
		defer shared.Stop()
		return m.Run()
	}()
	os.Exit(code)
}

// tool is the command line with an environment of its own.
type tool struct {
	t   *testing.T
	env []string
}

// withKey returns a tool that uses an API key of the environment.
func withKey(t *testing.T, key string) tool {
	t.Helper()
	return bare(t).with("HOLDFAST_BASE_URL="+shared.BaseURL, "HOLDFAST_API_KEY="+key)
}

// bare returns a tool without a credential. It stores credentials in a file.
func bare(t *testing.T) tool {
	t.Helper()
	return tool{t, []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "HOLDFAST_CONFIG_DIR=" + t.TempDir(), "HOLDFAST_CREDENTIALS=file"}}
}

// with returns the tool with more variables.
func (c tool) with(env ...string) tool {
	return tool{c.t, append(append([]string{}, c.env...), env...)}
}

// folder returns the configuration folder.
func (c tool) folder() string {
	for _, entry := range c.env {
		if dir, ok := strings.CutPrefix(entry, "HOLDFAST_CONFIG_DIR="); ok {
			return dir
		}
	}
	return ""
}

// result is what a command has written, and its exit code.
type result struct {
	out, err string
	code     int
}

// command returns a command that ends with the test.
func (c tool) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), binary, args...)
	cmd.Env = c.env
	cmd.Dir = c.folder()
	return cmd
}

// run runs a command to its end.
func (c tool) run(stdin string, args ...string) result {
	c.t.Helper()
	cmd := c.command(args...)
	var out, failure bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &failure
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return result{out.String(), failure.String(), cmd.ProcessState.ExitCode()}
}

// ok runs a command that must succeed, and returns its output without the last newline.
func (c tool) ok(args ...string) string {
	c.t.Helper()
	r := c.run("", args...)
	if r.code != 0 {
		c.t.Fatalf("holdfast %q: exit code %d\n%s%s", args, r.code, r.out, r.err)
	}
	return strings.TrimSuffix(r.out, "\n")
}

// fails runs a command that must fail with a code, with all texts in its error, and without output.
func (c tool) fails(code int, args []string, texts ...string) {
	c.t.Helper()
	r := c.run("", args...)
	if r.code != code || r.out != "" {
		c.t.Errorf("holdfast %q: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			c.t.Errorf("holdfast %q: the error has no %q:\n%s", args, text, r.err)
		}
	}
}

// unique returns a name that no other run of a test has.
func unique() string { return strings.ToLower(rand.Text()[:12]) }

// object returns a JSON document.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return document
}

// screen is the output of a running command.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds output.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns the output so far.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until a condition holds.
func await(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) || ctx.Err() != nil {
			t.Fatalf("%s does not happen", what)
		}
	}
}
