package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errRunning says that this checkout's stack is up already.
var errRunning = errors.New("this checkout's stack is running already")

// lock takes the checkout's lock, which the kernel gives back when we die.
func lock(run string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(run, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor fits
		_ = f.Close()
		return nil, fmt.Errorf("%w: stop it with `make down`", errRunning)
	}
	return func() { _ = f.Close() }, nil
}

// supervisorPID is what the running supervisor wrote, 0 when nothing is there.
func supervisorPID(run string) int {
	text, err := os.ReadFile(filepath.Join(run, "pids", "local")) //nolint:gosec // of this checkout
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// awaitLock waits until the supervisor has given the lock back.
func awaitLock(ctx context.Context, run string, limit time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		release, err := lock(run)
		if !errors.Is(err, errRunning) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the stack does not stop within %v", limit)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
