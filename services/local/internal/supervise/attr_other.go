//go:build !linux

package supervise

import "syscall"

// childAttr gives a child its own process group. Only Linux can end a child with its parent. On other systems, the next start ends
// the child.
func childAttr(s Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: s.User}
}

// Attached leaves a command in our process group, so that it can use the terminal.
func Attached() *syscall.SysProcAttr { return nil }
