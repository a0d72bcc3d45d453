package stack

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var errStatus = errors.New("malformed /proc status")

// Resident returns the memory of a process in bytes, and its peak since ResetPeak.
func Resident(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("memory: %w", err)
	}
	now, err = kilobytes(string(text), "VmRSS:")
	if err != nil {
		return 0, 0, err
	}
	peak, err = kilobytes(string(text), "VmHWM:")
	return now, peak, err
}

// ResetPeak resets the peak of a process to its current memory.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}

// kilobytes returns the value of a line such as "VmRSS:      1234 kB" in bytes.
func kilobytes(status, name string) (int64, error) {
	_, rest, _ := strings.Cut(status, "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("%w: no %s", errStatus, name)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return n << 10, err
}
