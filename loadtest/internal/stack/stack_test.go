package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseStatReadsUserAndSystemTime(t *testing.T) {
	t.Parallel()
	const line = "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 1234 0 5 0 321 123 9 7 20 0 8 0 55555 1 2 3\n"
	got, err := parseStat(line)
	if want := (times{own: 4440 * time.Millisecond, ended: 160 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x) S 1", strings.ReplaceAll(line, "321", "x")} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

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

func TestProgressShowsLinesOfProgressOnly(t *testing.T) {
	t.Parallel()
	var shown []string
	var log strings.Builder
	p := &progress{log: &log, say: func(_ string, args ...any) { shown = append(shown, args[0].(string)) }}
	for _, part := range []string{"   1.2s  Redis on", " 127.0.0.1:1\n  Test key  svc_te", "st_secret\n  12.0s  ready\n"} {
		if _, err := p.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(shown, "|"); got != "Redis on 127.0.0.1:1|ready" {
		t.Errorf("shown: %s", got)
	}
	if !strings.Contains(log.String(), "svc_test_secret") {
		t.Error("the log is not whole")
	}
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
	const status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n"
	for name, want := range map[string]int64{"VmRSS:": 1 << 20, "VmHWM:": 2 << 20} {
		if got, err := kilobytes(status, name); got != want || err != nil {
			t.Errorf("%s %d, %v", name, got, err)
		}
	}
	if _, err := kilobytes(status, "VmSwap:"); err == nil {
		t.Error("a line that is missing has a value")
	}
	now, peak, err := Resident(os.Getpid())
	if err != nil || now <= 0 || peak < now {
		t.Errorf("%d, %d, %v", now, peak, err)
	}
}
