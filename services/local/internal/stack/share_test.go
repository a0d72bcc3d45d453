package stack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/libs/testservers"
)

// TestSharedServersOutliveTheirUsers checks that the addresses of shared servers are there as long as a test process holds its lock, and
// disappear afterwards, or when the program is ended.
func TestSharedServersOutliveTheirUsers(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"unused", "canceled"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			dir := t.TempDir()
			path := filepath.Join(dir, testservers.EnvFile)
			user, err := testservers.Lock(filepath.Join(dir, testservers.UsersFile), syscall.LOCK_SH)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- share(ctx, dir, []string{"HOME=/", "TEST_REDIS_URL=redis://x"}, 10*time.Millisecond, time.Millisecond)
			}()
			select {
			case err := <-ended:
				t.Fatalf("ended while in use: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "TEST_REDIS_URL=redis://x\n" {
				t.Errorf("%q, %v", text, err)
			}
			if end == "unused" {
				_ = user.Close()
			} else {
				defer func() { _ = user.Close() }()
				cancel()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the addresses are left: %v", err)
			}
			cancel()
		})
	}
}
