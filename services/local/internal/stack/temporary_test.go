package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunCommandHandsOverTheExitCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137} {
		err := RunCommand(t.Context(), []string{"sh", "-c", text}, os.Environ())
		var code ExitCode
		errors.As(err, &code)
		if int(code) != want {
			t.Errorf("%q gives %v", text, err)
		}
	}
	if err := RunCommand(t.Context(), []string{"/no/such/command"}, nil); err == nil {
		t.Error("a command that does not exist was run")
	}
}

// TestWithStartsAndStopsRealParts builds this command and runs it like make test.
func TestWithStartsAndStopsRealParts(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "local")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-p", "2", "-o", binary, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), binary, "with", "--kafka", "none", "--pooler", "--", "sh", "-c", "echo $TEST_POSTGRES_URL $TEST_REDIS_URL pooler $TEST_POOLER_URL; exit 5")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(string(out), "postgres://postgres:") || !strings.Contains(string(out), "redis://default:") || !strings.Contains(string(out), "pooler postgres://") {
		t.Fatalf("the command saw %q", out)
	}
	base, err := scratchBase()
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(base, fmt.Sprintf("%s%d-*", scratchPrefix, cmd.Process.Pid))); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
}
