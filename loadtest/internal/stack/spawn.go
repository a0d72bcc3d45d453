// Package stack starts the measured programs: a complete platform, additional gateways, nginx, and the upstream. It measures the
// processor time of each process.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is one running program in its own process group.
type Process struct {
	cmd  *exec.Cmd
	name string
	stop syscall.Signal
	done chan struct{} // closed when the program has ended
}

// program specifies how to start a Process.
type program struct {
	name string
	env  []string // the entire environment
	log  io.Writer
	path string
	args []string
	user *syscall.Credential // nil: the user of this process
	stop syscall.Signal      // requests its end; 0: SIGTERM
}

// spawner starts every child from one thread that lives as long as this process, because the kernel sends the parent-death signal
// when the thread that forked ends.
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
	cmd.Env, cmd.Stdout, cmd.Stderr = one.env, one.log, one.log
	stop := cmp.Or(one.stop, syscall.SIGTERM)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: stop, Credential: one.user}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", one.name, err)
	}
	p := &Process{cmd: cmd, name: one.name, stop: stop, done: make(chan struct{})}
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
	_ = p.cmd.Process.Signal(p.stop)
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
			return fmt.Errorf("%s: %w before it was ready", p.name, errEnded)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", p.name, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// inherited returns the environment of this process with some added settings.
func inherited(settings ...string) []string { return append(os.Environ(), settings...) }
