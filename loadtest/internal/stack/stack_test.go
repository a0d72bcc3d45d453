package stack

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCPUGrowsWithWorkAndCountsChildren(t *testing.T) {
	t.Parallel()
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	child, err := start(program{name: "spin", path: "/bin/sh", args: []string{"-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		own, err := Own(child.PID())
		if err != nil {
			t.Fatal(err)
		}
		if own >= 200*time.Millisecond && all-before >= own {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("child %v, all %v after 20 s of spinning", own, all-before)
		}
	}
}

// TestCPUOfAProcessWhoseChildrenEnd checks that children that end during the reading are not an error.
func TestCPUOfAProcessWhoseChildrenEnd(t *testing.T) {
	t.Parallel()
	parent, err := start(program{name: "children", path: "/bin/sh", args: []string{"-c", "while :; do /bin/true & /bin/true; done"}})
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Stop()
	for range 500 {
		if _, err := CPU(parent.PID()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStopEndsAProcess(t *testing.T) {
	t.Parallel()
	p, err := start(program{name: "sleep", path: "/bin/sh", args: []string{"-c", "exec sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Stop()
	select {
	case <-p.done:
	default:
		t.Error("it still runs")
	}
	(*Process)(nil).Stop()
}

func TestLinkCopiesOrLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := link(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestResidentReportsThePeak checks that the peak stays after the memory was returned, until it is reset.
func TestResidentReportsThePeak(t *testing.T) {
	t.Parallel()
	now, peak, err := Resident(os.Getpid())
	if err != nil || now <= 0 || peak < now {
		t.Errorf("%v, %v, %v", now, peak, err)
	}
}
