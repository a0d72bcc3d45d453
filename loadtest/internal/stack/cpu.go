package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	t, err := read(pid)
	if err != nil {
		return 0, err
	}
	used := t.own + t.ended
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

// Own returns the processor time, user and system, of a process without its children.
func Own(pid int) (time.Duration, error) {
	t, err := read(pid)
	return t.own, err
}

// times are the processor times of a process, and of its children that have ended.
type times struct{ own, ended time.Duration }

func read(pid int) (times, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times{}, fmt.Errorf("processor time: %w", err)
	}
	return parseStat(string(text))
}

var errStat = errors.New("malformed /proc stat")

// parseStat reads utime, stime, cutime, and cstime, fields 14 to 17. The name, field 2, can contain spaces and parentheses.
func parseStat(text string) (times, error) {
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 15 {
		return times{}, errStat
	}
	var n [4]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return times{}, errStat
		}
	}
	return times{own: time.Duration(n[0]+n[1]) * tick, ended: time.Duration(n[2]+n[3]) * tick}, nil
}
