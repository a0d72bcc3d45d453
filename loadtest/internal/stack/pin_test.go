package stack_test

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast.dev/loadtest/internal/stack"
)

// TestPin pins a shell with a running child, and checks the processors of both, and of a child that is started later.
func TestPin(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("the machine has one processor")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const script = `sleep 60 & echo ready; read line; for p in $! self; do grep Cpus_allowed_list /proc/$p/status; done; kill $!`
	shell := exec.CommandContext(ctx, "sh", "-c", script)
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, len("ready\n"))
	if _, err := out.Read(ready); err != nil {
		t.Fatal(err)
	}
	if err := stack.Pin(shell.Process.Pid, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for buf := make([]byte, 512); ; {
		n, err := out.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			break
		}
	}
	_ = shell.Wait()
	if got := strings.Count(all.String(), "Cpus_allowed_list:\t0\n"); got != 2 {
		t.Errorf("processors of the child that ran and of a later one:\n%s", all.String())
	}
	if err := stack.Pin(1<<30, 1); err == nil {
		t.Error("no error for a process that does not exist")
	}
}
