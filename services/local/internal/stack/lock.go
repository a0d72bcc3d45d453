package stack

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

// errRunning reports that this checkout's stack is already running.
var errRunning = errors.New("the platform of this checkout is already running")

// lock acquires the checkout's lock. The kernel releases it when this process ends.
func (c Checkout) lock() (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.Run, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w: stop it with `make down`", errRunning)
	}
	text := strconv.Itoa(os.Getpid())
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, f.Truncate(int64(len(text)))
}

// stopHolder signals the process that holds the lock to stop, and reports whether that process exists. The process id of a killed
// process stays in the file until the next process writes its own.
func (c Checkout) stopHolder() bool {
	text, err := os.ReadFile(filepath.Join(c.Run, "lock"))
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return err == nil && syscall.Kill(pid, syscall.SIGTERM) == nil
}

// takeOver stops the process that holds the lock, waits until the lock is free, and acquires it.
func (c Checkout) takeOver(ctx context.Context, limit time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	requested := false
	for {
		release, err := c.lock()
		if !errors.Is(err, errRunning) {
			return release, err
		}
		requested = requested || c.stopHolder()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the stack does not stop within %v", limit)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
