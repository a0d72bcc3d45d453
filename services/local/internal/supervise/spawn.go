package supervise

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts every child from one thread that lives as long as the
// process: the kernel's parent-death signal is tied to the thread that forked,
// so a child started from a goroutine's passing thread would be killed at
// random.
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
