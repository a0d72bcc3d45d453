package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/libs/testservers"
)

// Shared servers outlive the last test process for a while, because none may run while go test compiles.
const (
	unusedFor = 20 * time.Second
	checkUse  = time.Second
)

// Share writes the addresses of the servers to a folder, and returns when no test process has used them for a while.
func Share(ctx context.Context, dir string, env []string) error {
	return share(ctx, dir, env, unusedFor, checkUse)
}

func share(ctx context.Context, dir string, env []string, unused, check time.Duration) error {
	var text strings.Builder
	for _, v := range env {
		if strings.HasPrefix(v, "TEST_") {
			text.WriteString(v + "\n")
		}
	}
	path := filepath.Join(dir, testservers.EnvFile)
	if err := os.WriteFile(path+".new", []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("share servers: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("share servers: %w", err)
	}
	for since := time.Now(); ctx.Err() == nil; {
		users, err := testservers.Lock(filepath.Join(dir, testservers.UsersFile), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err != nil:
			since = time.Now()
		case time.Since(since) > unused:
			defer func() { _ = users.Close() }() // a process that waits for the lock finds no addresses, and starts others
			return os.Remove(path)
		default:
			_ = users.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(check):
		}
	}
	return os.Remove(path)
}
