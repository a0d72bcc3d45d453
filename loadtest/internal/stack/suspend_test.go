package stack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// state returns the state of a process; "" if it has ended.
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if ended(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return stateOf(string(text))
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

func TestSuspendStopsATreeUntilResume(t *testing.T) {
	t.Parallel()
	parent, child := family(t)
	alone, other := family(t)
	s, err := suspend([]int{alone.PID(), parent.PID()}, func(pid int) bool { return pid == parent.PID() })
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]string{parent.PID(): "T", child: "T", alone.PID(): "T"} {
		if got := state(t, pid); got != want {
			t.Errorf("%d is in state %s, want %s", pid, got, want)
		}
	}
	if got := state(t, other); got == "T" {
		t.Error("a child that was to run is stopped")
	}
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{parent.PID(), child, alone.PID()} {
		if got := state(t, pid); got == "T" || got == "" {
			t.Errorf("%d is in state %q after resume", pid, got)
		}
	}
}

// TestSuspendedProcessesContinueWhenTheirStopperIsKilled closes the guard's input as the kernel does at the end of this process.
func TestSuspendedProcessesContinueWhenTheirStopperIsKilled(t *testing.T) {
	t.Parallel()
	parent, child := family(t)
	s, err := suspend([]int{parent.PID()}, always)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.pids.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); state(t, parent.PID()) == "T" || state(t, child) == "T"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still stopped after 20 s")
		}
	}
	_ = s.guard.Wait()
}

func TestSuspendAcceptsEndedProcesses(t *testing.T) {
	t.Parallel()
	gone, err := start(program{name: "true", path: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	<-gone.done
	parent, _ := family(t)
	s, err := suspend([]int{gone.PID(), parent.PID()}, always)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	if got := state(t, parent.PID()); got == "T" {
		t.Error("the process after the ended one is still stopped")
	}
	if err := (*suspension)(nil).resume(); err != nil {
		t.Error(err)
	}
}

// TestPlatformSuspendsServersLast checks the order of the processes by their files: services first, and the servers that they use
// last. The supervisor's children are not stopped as its children.
func TestPlatformSuspendsServersLast(t *testing.T) {
	t.Parallel()
	p := &Platform{Dir: t.TempDir()}
	pids := p.Dir + "/.run/pids"
	if err := os.MkdirAll(pids, 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, name := range []string{"postgres", "local", "gateway"} {
		parent, child := family(t)
		all[name], all[name+"'s child"] = parent.PID(), child
		if err := os.WriteFile(pids+"/"+name, []byte(strconv.Itoa(parent.PID())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := p.suspend()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.resume() }()
	var stopped []string
	for _, name := range []string{"gateway", "gateway's child", "local", "local's child", "postgres", "postgres's child"} {
		if state(t, all[name]) == "T" {
			stopped = append(stopped, name)
		}
	}
	if got := strings.Join(stopped, ", "); got != "gateway, gateway's child, local, postgres, postgres's child" {
		t.Errorf("stopped: %s", got)
	}
	names, err := p.running()
	if err != nil || strings.Join(names, " ") != "gateway local postgres" {
		t.Errorf("order %v, %v", names, err)
	}
}
