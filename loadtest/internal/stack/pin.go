package stack

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin limits all threads of a process and of its children to the first processors of the machine. Threads and processes that they
// start later inherit the limit.
func Pin(pid, processors int) error {
	var set unix.CPUSet
	for i := range processors {
		set.Set(i)
	}
	return pin(pid, &set)
}

func pin(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("pin: %w", err)
		}
		if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin process %d: %w", pid, err)
		}
	}
	below, err := children(pid)
	if err != nil {
		return err
	}
	for _, child := range below {
		if err := pin(child, set); err != nil && !ended(err) {
			return err
		}
	}
	return nil
}
