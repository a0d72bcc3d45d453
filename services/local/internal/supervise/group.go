package supervise

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The back-off between two starts of a process that crashes. It doubles from first to longest, and returns to first after the
// process ran for calm times the next pause.
const (
	firstDelay   = 200 * time.Millisecond
	longestDelay = 5 * time.Second
	calm         = 10
)

var errStopping = errors.New("the stack is being stopped")

// Group holds the running processes of one stack in the order of their start.
type Group struct {
	PIDs   string                           // folder of the pid files; empty: none
	Notice func(format string, args ...any) // called at each crash and restart; can be nil

	mu      sync.Mutex
	procs   []*process
	stopped bool
}

type process struct {
	spec    Spec
	quit    chan struct{} // closed: do not restart
	done    chan struct{} // closed: ended permanently
	mu      sync.Mutex
	pid     int // 0 while not running
	lastErr error
	deaths  int
}

// Start runs spec and keeps it running until Stop.
func (g *Group) Start(spec Spec) error {
	spec = spec.withDefaults()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return errStopping
	}
	p := &process{spec: spec, quit: make(chan struct{}), done: make(chan struct{})}
	cmd, err := g.spawn(p)
	if err != nil {
		return err
	}
	g.procs = append(g.procs, p)
	go g.watch(p, cmd)
	return nil
}

// Failed returns the reason why the process with that name is not running; nil if it is running.
func (g *Group) Failed(name string) error {
	p := g.find(name)
	if p == nil {
		return nil
	}
	return p.failure()
}

// Deaths returns how often the process with that name crashed.
func (g *Group) Deaths(name string) int {
	p := g.find(name)
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaths
}

func (g *Group) find(name string) *process {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.procs {
		if p.spec.Name == name {
			return p
		}
	}
	return nil
}

// Stop stops every process, the last started first, and returns when all have ended.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopped = true
	procs := g.procs
	g.procs = nil
	g.mu.Unlock()
	for i := len(procs) - 1; i >= 0; i-- {
		procs[i].stop()
	}
}

func (g *Group) spawn(p *process) (*exec.Cmd, error) {
	cmd := p.spec.command()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quitting() {
		return nil, errStopping
	}
	if err := Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.spec.Name, err)
	}
	p.pid = cmd.Process.Pid
	return cmd, WritePID(g.PIDs, p.spec.Name, p.pid)
}

// watch waits for the process and starts it again, until quit is closed.
func (g *Group) watch(p *process, cmd *exec.Cmd) {
	defer close(p.done)
	defer removePID(g.PIDs, p.spec.Name)
	delay := firstDelay
	for cmd != nil {
		began := time.Now()
		p.ended(waitFor(cmd))
		if time.Since(began) > calm*delay {
			delay = firstDelay
		}
		cmd = g.restart(p, &delay)
	}
}

// restart waits for delay and starts the process again. It returns nil if the process must not run.
func (g *Group) restart(p *process, delay *time.Duration) *exec.Cmd {
	for !p.spec.Once && !p.quitting() {
		g.notice("%s died (%v), starting it again in %v", p.spec.Name, p.failure(), *delay)
		select {
		case <-p.quit:
			return nil
		case <-time.After(*delay):
		}
		*delay = min(2**delay, longestDelay)
		cmd, err := g.spawn(p)
		if err == nil {
			return cmd
		}
		p.ended(err)
	}
	return nil
}

// waitFor waits for cmd, and then ends the rest of its process group.
func waitFor(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	if err == nil {
		err = errors.New("exit status 0")
	}
	return err
}

func (p *process) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.lastErr = 0, err
	p.deaths++
}

// failure returns the reason why the process is not running; nil if it is running.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 {
		return nil
	}
	return p.lastErr
}

func (p *process) quitting() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

func (p *process) stop() {
	p.mu.Lock()
	close(p.quit)
	p.signal(p.spec.Stop)
	p.mu.Unlock()
	timer := time.NewTimer(p.spec.StopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.mu.Lock()
	p.signal(syscall.SIGKILL)
	p.mu.Unlock()
	<-p.done
}

// signal signals the process itself, not its group: Postgres and Redis stop their own children. The caller holds p.mu.
func (p *process) signal(sig syscall.Signal) {
	if p.pid != 0 {
		_ = syscall.Kill(p.pid, sig)
	}
}

func (g *Group) notice(format string, args ...any) {
	if g.Notice != nil {
		g.Notice(format, args...)
	}
}
