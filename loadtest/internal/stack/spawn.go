// Package stack starts the measured programs: a complete platform, additional gateways, nginx, and the upstream. It
// measures the processor time of each process.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is one running program in its own process group.
type Process struct {
	program

	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

// program specifies how to start a Process.
type program struct {
	name string
	env  []string // the entire environment
	log  string   // path of a file for its output; empty: none
	path string
	args []string
}

// spawner starts every child from one thread that lives as long as this process, because the kernel sends the
// parent-death signal when the thread that forked ends.
var spawner = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// start runs a program, which stops when this process ends.
func start(one program) (*Process, error) {
	cmd := exec.Command(one.path, one.args...)
	if cmd.Env = one.env; one.log != "" {
		log, err := os.OpenFile(one.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = log.Close() }()
		cmd.Stdout, cmd.Stderr = log, log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", one.name, err)
	}
	p := &Process{program: one, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop requests that the program ends, and kills its group after two minutes. It accepts a nil or ended process.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.done
	}
}

var errEnded = errors.New("ended")

// await polls ready until it succeeds, the program ends, or limit passes.
func (p *Process) await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: %w before it was ready\n%s", p.name, errEnded, tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, errors.Join(err, ctx.Err()), tail(p.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// inherited returns the environment of this process with some added settings.
func inherited(settings ...string) []string { return append(os.Environ(), settings...) }
