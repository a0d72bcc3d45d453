//go:build !linux

package supervise

import "syscall"

// childAttr gives a child its own process group. Only Linux can tie a child's
// life to its parent's; elsewhere the clean-up of the next start finds it.
func childAttr(s Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: s.User}
}

// Attached leaves a command in our process group, so that it keeps the
// terminal.
func Attached() *syscall.SysProcAttr { return nil }
