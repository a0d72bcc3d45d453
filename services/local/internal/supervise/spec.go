// Package supervise runs the stack's processes. It starts each in its own process group, restarts one that crashes, and stops them
// in reverse order. It ensures that they end if the supervisor itself is killed.
package supervise

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Spec configures one process.
type Spec struct {
	Name string   // also the name of the pid file
	Path string   // the executable
	Args []string // without the executable's name
	Env  []string // the complete environment, KEY=value
	Dir  string   // working folder
	User *syscall.Credential
	Log  io.Writer // both output streams

	Stop        syscall.Signal // requests a graceful stop; 0: SIGTERM
	Orphan      syscall.Signal // sent by the kernel when the supervisor crashes; 0: SIGKILL
	StopTimeout time.Duration  // then SIGKILL to the whole group; 0: 10 s
	Once        bool           // not restarted when it crashes
}

const defaultStopTimeout = 10 * time.Second

func (s Spec) withDefaults() Spec {
	if s.Stop == 0 {
		s.Stop = syscall.SIGTERM
	}
	if s.Orphan == 0 {
		s.Orphan = syscall.SIGKILL
	}
	if s.StopTimeout == 0 {
		s.StopTimeout = defaultStopTimeout
	}
	return s
}

func (s Spec) command() *exec.Cmd {
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Env, cmd.Dir = s.Env, s.Dir
	cmd.Stdout, cmd.Stderr = s.Log, s.Log
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = childAttr(s)
	return cmd
}

// WritePID writes a pid file in one step. With an empty folder it does nothing.
func WritePID(dir, name string, pid int) error {
	if dir == "" {
		return nil
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func removePID(dir, name string) {
	if dir != "" {
		_ = os.Remove(filepath.Join(dir, name))
	}
}

// signalGroup sends sig to the process group led by pid. It is not an error if the group has ended.
func signalGroup(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
