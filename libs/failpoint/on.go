//go:build failpoints

// Package failpoint marks the steps at which a test makes a process crash. Only a build with the tag failpoints has them.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// armed is the step in the environment variable FAILPOINT, which is <name>, or <name>:<n> for the nth pass.
var armed, after = parse(os.Getenv("FAILPOINT"))

var passes atomic.Int64

func parse(setting string) (name string, after int64) {
	name, number, _ := strings.Cut(setting, ":")
	after, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		after = 1
	}
	return name, after
}

// Here kills the process with SIGKILL when FAILPOINT names the step.
func Here(name string) {
	if name != armed || passes.Add(1) != after {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal may arrive a moment later
}
