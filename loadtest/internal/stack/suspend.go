package stack

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// suspension is a set of stopped processes. They continue after resume, or when this process ends.
type suspension struct {
	guard  *exec.Cmd
	pids   io.WriteCloser // to the guard
	except int            // process that is not stopped, with its descendants
}

// guardScript reads process ids until its input ends, and then continues these processes, the last one first. The input
// also ends when this process is killed, so that no process stays stopped.
const guardScript = `pids=
while read -r pid; do pids="$pid $pids"; done
[ -z "$pids" ] || kill -CONT $pids`

// suspend stops processes and all their descendants, except one with its own, with SIGSTOP.
func suspend(except int, pids ...int) (*suspension, error) {
	s := &suspension{except: except, guard: exec.Command("/bin/sh", "-c", guardScript)}
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it
	var err error
	if s.pids, err = s.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.guard.Start(); err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if err := s.add(pid); err != nil {
			return nil, errors.Join(fmt.Errorf("stopping process %d: %w", pid, err), s.resume())
		}
	}
	return s, nil
}

// add stops a process and then its children, because a stopped process starts no others. A process that has ended is
// not an error.
func (s *suspension) add(pid int) error {
	if pid == s.except {
		return nil
	}
	if _, err := fmt.Fprintln(s.pids, pid); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); errors.Is(err, syscall.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	if err := awaitStopped(pid); err != nil {
		return err
	}
	below, err := children(pid)
	if err != nil {
		return err
	}
	for _, child := range below {
		if err := s.add(child); err != nil {
			return err
		}
	}
	return nil
}

// resume continues the processes.
func (s *suspension) resume() error {
	_ = s.pids.Close()
	var exit *exec.ExitError // some of the processes have ended
	if err := s.guard.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// stopLimit is how long a process may need to stop. A process that waits for its disk does not stop before that.
const stopLimit = 10 * time.Second

var errRuns = errors.New("the process does not stop")

func awaitStopped(pid int) error {
	for end := time.Now().Add(stopLimit); ; time.Sleep(time.Millisecond) {
		stat, err := read(pid)
		switch {
		case ended(err):
			return nil
		case err != nil:
			return err
		case stat.State == "T" || stat.State == "Z":
			return nil
		case time.Now().After(end):
			return errRuns
		}
	}
}
