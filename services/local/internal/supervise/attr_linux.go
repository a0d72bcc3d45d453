package supervise

import "syscall"

// childAttr gives a child its own process group, so that Ctrl-C in the terminal reaches only the supervisor, and makes the kernel
// signal the child when the supervisor ends.
func childAttr(s Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: s.User, Pdeathsig: s.Orphan}
}

// Attached makes a command end when this process ends. The command stays in our process group, so that it can use the terminal.
func Attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
