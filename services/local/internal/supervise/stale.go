package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// OwnerEnv is set in every child's environment to the child's checkout, so that a later start can distinguish its own old
// processes from other processes with the same process id.
const OwnerEnv = "HOLDFAST_CHECKOUT"

// CleanUp ends the processes that a killed supervisor left behind: each process with a pid file in dir and one of marks in its
// environment or command line. It returns the names of the ended processes.
func CleanUp(dir string, marks ...string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	var names []string
	for _, file := range files {
		pid, err := readPID(file)
		if err == nil && pid != os.Getpid() && Owned(pid, marks...) {
			end(pid)
			names = append(names, filepath.Base(file))
		}
		_ = os.Remove(file)
	}
	return names
}

// Owned reports whether the process has one of marks in its environment or command line.
func Owned(pid int, marks ...string) bool {
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		if err != nil {
			continue
		}
		for _, mark := range marks {
			if mark != "" && bytes.Contains(text, []byte(mark)) {
				return true
			}
		}
	}
	return false
}

func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// end signals the process to stop, and kills it and its group after 10 s. SIGINT requests a fast shutdown of Postgres. Other
// processes treat it like SIGTERM.
func end(pid int) {
	_ = syscall.Kill(pid, syscall.SIGINT)
	if gone(pid, defaultStopTimeout) {
		return
	}
	_ = signalGroup(pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	gone(pid, time.Second)
}

// gone waits until no process has that id, and reports whether this is the case.
func gone(pid int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return true
		}
	}
	return false
}
