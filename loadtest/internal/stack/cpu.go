package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of /proc's processor times: USER_HZ, 100 per second on every Linux.
const tick = 10 * time.Millisecond

// CPU returns the processor time, user and system, of a process and its children, including those that have ended.
func CPU(pid int) (time.Duration, error) {
	for {
		used, err := tree(pid)
		if !errors.Is(err, errChildEnded) {
			return used, err
		}
	}
}

// errChildEnded reports that a child ended while its time was read. Its time is now included in its parent's.
var errChildEnded = errors.New("a child has ended")

func tree(pid int) (time.Duration, error) {
	stat, err := read(pid)
	if err != nil {
		return 0, err
	}
	used := own(stat) + time.Duration(stat.CUTime+stat.CSTime)*tick
	below, err := children(pid)
	if err != nil {
		return 0, err
	}
	for _, child := range below {
		more, err := tree(child)
		if ended(err) {
			err = errChildEnded
		}
		if err != nil {
			return 0, err
		}
		used += more
	}
	return used, nil
}

// Own returns the processor time, user and system, of a process without its children.
func Own(pid int) (time.Duration, error) {
	stat, err := read(pid)
	return own(stat), err
}

func own(stat procfs.ProcStat) time.Duration { return time.Duration(stat.UTime+stat.STime) * tick }

func read(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// ended reports whether a file of /proc could not be read because its process has ended.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// children returns the process ids of the children of a process.
func children(pid int) ([]int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var all []int
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err != nil {
			continue // a thread that has ended
		}
		for _, child := range strings.Fields(string(text)) {
			id, err := strconv.Atoi(child)
			if err != nil {
				return nil, err
			}
			all = append(all, id)
		}
	}
	return all, nil
}

// ByDatabase returns the processor time of PostgreSQL's running server processes for each of the databases, of those
// that have one. A server process has the name of its database in its title. pid is the process that started them.
func ByDatabase(pid int, databases []string) (map[string]time.Duration, error) {
	below, err := children(pid)
	if err != nil {
		return nil, err
	}
	used := map[string]time.Duration{}
	for _, child := range below {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if err == nil {
			if database := databaseOf(string(title), databases); database != "" {
				var more time.Duration
				more, err = Own(child)
				used[database] += more
			}
		}
		if err != nil && !ended(err) { // the time of an ended process is now included in its parent's
			return nil, err
		}
	}
	return used, nil
}

// databaseOf returns the database in the title of a server process, such as "postgres: app holdfast_bookings
// 127.0.0.1(4711) idle". It returns "" if the process serves none of the databases.
func databaseOf(title string, databases []string) string {
	for _, field := range strings.FieldsFunc(title, func(r rune) bool { return r == ' ' || r == 0 }) {
		if slices.Contains(databases, field) {
			return field
		}
	}
	return ""
}

// Resident returns the memory of a process in bytes, and its peak since ResetPeak.
func Resident(pid int) (now, peak float64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := p.NewStatus()
	return float64(status.VmRSS), float64(status.VmHWM), err
}

// ResetPeak resets the peak of a process to its current memory.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}
