package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suspension is a set of stopped processes. They run again after resume, or when this process ends.
type suspension struct {
	guard *exec.Cmd
	pids  io.WriteCloser // to the guard
}

// guardScript reads process ids until its input ends, and then continues these processes, the last one first. Its input also ends
// when this process is killed, so that no stopped process is left behind.
const guardScript = `pids=
while read -r pid; do pids="$pid $pids"; done
[ -z "$pids" ] || kill -CONT $pids`

// suspend stops processes with SIGSTOP, each one with all its descendants if tree reports true for it.
func suspend(pids []int, tree func(pid int) bool) (*suspension, error) {
	s := &suspension{guard: exec.Command("/bin/sh", "-c", guardScript)}
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it
	var err error
	if s.pids, err = s.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.guard.Start(); err != nil {
		return nil, fmt.Errorf("suspend: %w", err)
	}
	for _, pid := range pids {
		if err := s.add(pid, tree(pid)); err != nil {
			return nil, errors.Join(fmt.Errorf("suspend: %w", err), s.resume())
		}
	}
	return s, nil
}

// add stops a process. Only then its children are stopped, because a stopped process starts no others. A process that has ended
// is not an error.
func (s *suspension) add(pid int, tree bool) error {
	if _, err := fmt.Fprintln(s.pids, pid); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); errors.Is(err, syscall.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	if err := awaitStopped(pid); err != nil || !tree {
		return err
	}
	below, err := children(pid)
	if err != nil {
		return err
	}
	for _, child := range below {
		if err := s.add(child, true); err != nil {
			return err
		}
	}
	return nil
}

// resume continues the processes. It accepts a nil suspension.
func (s *suspension) resume() error {
	if s == nil {
		return nil
	}
	_ = s.pids.Close()
	// The guard reports processes that have ended meanwhile as an error.
	var exit *exec.ExitError
	if err := s.guard.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// stopLimit is how long a process may need to stop. A process that waits for its disk does not stop before that.
const stopLimit = 10 * time.Second

var errRuns = errors.New("a process does not stop")

func awaitStopped(pid int) error {
	for end := time.Now().Add(stopLimit); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if ended(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if state := stateOf(string(text)); state == "T" || state == "Z" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %d", errRuns, pid)
		}
	}
}

// stateOf returns the state in the text of /proc/<pid>/stat, which follows the name in parentheses.
func stateOf(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// servers are the processes on which the others depend. They stop last and continue first.
var servers = []string{"local", "kafka", "kafka-embedded", "redis", "postgres"}

// running returns the names of the platform's processes in the order in which they can be stopped.
func (p *Platform) running() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(p.Dir, ".run", "pids", "*"))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = filepath.Base(file)
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(servers, a) - slices.Index(servers, b) })
	return names, nil
}

// suspend stops all processes of the platform, and those that Run has started.
func (p *Platform) suspend() (*suspension, error) {
	names, err := p.running()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, one := range p.others {
		pids = append(pids, one.PID())
	}
	supervisor := 0
	for _, name := range names {
		pid, err := p.PID(name)
		if err != nil {
			return nil, err
		}
		if pids = append(pids, pid); name == "local" {
			supervisor = pid
		}
	}
	return suspend(pids, func(pid int) bool { return pid != supervisor }) // its children have their own files
}
