package stack

import (
	"os"
	"testing"
	"time"
)

// state returns the state of a process; 0 if it has ended.
func state(t *testing.T, pid int) byte {
	t.Helper()
	stat, err := read(pid)
	if err != nil && !ended(err) {
		t.Fatal(err)
	}
	if err != nil || stat.State == "Z" {
		return 0
	}
	return stat.State[0]
}

// family starts a process with a child.
func family(t *testing.T) (parent *Process, child int) {
	t.Helper()
	parent, err := start(program{name: "family", path: "/bin/sh", args: []string{"-c", "sleep 600 & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(parent.Stop)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		below, err := children(parent.PID())
		if err != nil {
			t.Fatal(err)
		}
		if len(below) == 1 {
			t.Cleanup(func() { end, _ := os.FindProcess(below[0]); _ = end.Kill() })
			return parent, below[0]
		}
	}
	t.Fatal("no child")
	return nil, 0
}

// TestSuspendStopsTreesUntilResume also checks that a process that has ended is no error.
func TestSuspendStopsTreesUntilResume(t *testing.T) {
	t.Parallel()
	gone, err := start(program{name: "true", path: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	<-gone.done
	parent, child := family(t)
	other, otherChild := family(t)
	except, exceptChild := family(t)
	s, err := suspend(except.PID(), gone.PID(), parent.PID(), except.PID(), other.PID())
	if err != nil {
		t.Fatal(err)
	}
	all := []int{parent.PID(), child, other.PID(), otherChild}
	for _, pid := range all {
		if got := state(t, pid); got != 'T' {
			t.Errorf("%d is in state %q", pid, got)
		}
	}
	running := func(pids ...int) {
		for _, pid := range pids {
			if got := state(t, pid); got == 'T' || got == 0 {
				t.Errorf("%d is in state %q", pid, got)
			}
		}
	}
	running(except.PID(), exceptChild)
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	running(all...)
}
