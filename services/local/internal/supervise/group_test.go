package supervise

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never happened: " + what)
}

func alive(pid int) bool { return pid != 0 && syscall.Kill(pid, 0) == nil }

func script(name, text string, log io.Writer) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", text}, Env: os.Environ(), Log: log}
}

func TestCrashedProcessIsRestarted(t *testing.T) {
	t.Parallel()
	var g Group
	t.Cleanup(g.Stop)
	g.PIDs = t.TempDir()
	if err := g.Start(script("one", "exec sleep 60", io.Discard)); err != nil {
		t.Fatal(err)
	}
	first := g.PID("one")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a second process", func() bool { pid := g.PID("one"); return pid != first && alive(pid) })
	text, err := os.ReadFile(filepath.Join(g.PIDs, "one"))
	if err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(g.PID("one")) {
		t.Fatalf("pid file holds %q (%v), the process is %d", text, err, g.PID("one"))
	}
	if g.Deaths("one") != 1 {
		t.Fatalf("%d deaths were counted", g.Deaths("one"))
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	g := Group{PIDs: t.TempDir()}
	stubborn := script("stubborn", "trap '' TERM; sleep 61 & while :; do sleep 0.1; done", io.Discard)
	stubborn.StopTimeout = 300 * time.Millisecond
	for _, s := range []Spec{script("plain", "exec sleep 60", io.Discard), stubborn} {
		if err := g.Start(s); err != nil {
			t.Fatal(err)
		}
	}
	pids := []int{g.PID("plain"), g.PID("stubborn")}
	g.Stop()
	for _, pid := range pids {
		eventually(t, "an empty process group", func() bool { return syscall.Kill(-pid, 0) == syscall.ESRCH })
	}
	if left, _ := filepath.Glob(filepath.Join(g.PIDs, "*")); len(left) > 0 {
		t.Fatalf("pid files are left: %v", left)
	}
	if err := g.Start(script("late", "exec sleep 60", io.Discard)); err == nil {
		t.Fatal("a process was started after Stop")
	}
}

func TestStopIsInReverseOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	log := &LineWriter{Line: func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, string(line))
	}}
	has := func(line string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(strings.Join(order, " "), line)
		}
	}
	var g Group
	for _, name := range []string{"a", "b", "c"} {
		loop := "trap 'echo stop-" + name + "; exit' TERM; echo up-" + name + "; while :; do sleep 0.02; done"
		if err := g.Start(script(name, loop, log)); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" is up", has("up-"+name))
	}
	g.Stop()
	if got := strings.Join(order[3:], " "); got != "stop-c stop-b stop-a" {
		t.Fatalf("order was %s", got)
	}
}

func TestStopDuringBackOffStartsNothing(t *testing.T) {
	t.Parallel()
	g := Group{PIDs: t.TempDir()}
	count := filepath.Join(t.TempDir(), "count")
	if err := g.Start(script("failing", "echo x >>"+count+"; exit 3", io.Discard)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three starts", func() bool { text, _ := os.ReadFile(count); return len(text) >= 6 })
	g.Stop()
	before, _ := os.ReadFile(count)
	time.Sleep(2 * firstDelay)
	if after, _ := os.ReadFile(count); len(after) != len(before) {
		t.Fatal("it was started after Stop")
	}
}

func TestCleanUpStopsOnlyOwnProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark := OwnerEnv + "=" + dir + "\x00"
	var g Group
	t.Cleanup(g.Stop)
	// Not a shell that replaces itself with exec, because its environment is empty during that time.
	ours, unrelated := script("ours", "", io.Discard), script("unrelated", "", io.Discard)
	ours.Path, ours.Args = "/bin/sleep", []string{"60"}
	unrelated.Path, unrelated.Args = ours.Path, ours.Args
	ours.Env = append(os.Environ(), OwnerEnv+"="+dir)
	ours.Once = true
	unrelated.Env = append(os.Environ(), OwnerEnv+"="+dir+"-too")
	for _, s := range []Spec{ours, unrelated} {
		if err := g.Start(s); err != nil {
			t.Fatal(err)
		}
		if err := WritePID(dir, s.Name, g.PID(s.Name)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the environment to be there", func() bool { return Owned(g.PID("ours"), mark) })
	if ended := CleanUp(dir, mark); len(ended) != 1 || ended[0] != "ours" {
		t.Fatalf("ended %v", ended)
	}
	if !alive(g.PID("unrelated")) {
		t.Fatal("an unrelated process was ended")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Fatalf("pid files are left: %v", left)
	}
}

func TestLineWriterJoinsPieces(t *testing.T) {
	t.Parallel()
	var got []string
	w := &LineWriter{Line: func(line []byte) { got = append(got, string(line)) }}
	for _, piece := range []string{"on", "e\ntwo\nth", "ree", "\n\n"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if strings.Join(got, "|") != "one|two|three|" {
		t.Fatalf("got %q", got)
	}
}

func TestLineWriterTruncatesLongLines(t *testing.T) {
	t.Parallel()
	var got []string
	w := &LineWriter{Line: func(line []byte) { got = append(got, string(line)) }}
	long := strings.Repeat("x", longestLine)
	for _, piece := range []string{long + "y", "yy", "\nnext\n" + long + "y\nlast\n"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !slices.Equal(got, []string{long, "next", long, "last"}) {
		t.Fatalf("%d lines, the second %.20q", len(got), got[1])
	}
}

func TestBackOffGrowsAndResets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var notices []string
	g := Group{Notice: func(_ string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, args[2].(time.Duration).String())
	}}
	// Three crashes. Between the first two, the process runs for more than ten times the next delay.
	count := filepath.Join(t.TempDir(), "count")
	text := "echo x >>" + count + "; [ $(wc -l <" + count + ") = 2 ] && sleep 4.2; exit 3"
	if err := g.Start(script("failing", text, io.Discard)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	want := "200ms 200ms 400ms"
	eventually(t, want, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(notices) >= 3
	})
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(notices[:3], " "); got != want {
		t.Errorf("the delays were %s, want %s", got, want)
	}
}
