package supervise

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts every child from one thread that lives as long as the process. The kernel sends the parent-death signal when the
// thread that forked ends, so a child started from another thread would be killed too early.
var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- r.cmd.Start()
		}
	}()
	return requests
})

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// Start starts cmd from the thread that outlives every child.
func Start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd: cmd, done: make(chan error, 1)}
	spawner() <- r
	return <-r.done
}
