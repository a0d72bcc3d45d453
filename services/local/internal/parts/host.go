// Package parts finds, installs, and starts the real parts that the platform needs: PostgreSQL, Redis, and a Kafka broker. Each is
// private to one checkout and runs on a loopback port as an ordinary user.
package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/services/local/internal/supervise"
)

// Host describes where the parts run: their folder, their user, and the group that supervises them.
type Host struct {
	Dir   string // data folder; each part has its own folder in it
	User  *syscall.Credential
	Group *supervise.Group
	Log   func(name string) io.Writer
	Say   func(format string, args ...any)
	Mark  string // value of supervise.OwnerEnv
}

// ServerUser returns the user that the parts run as. It returns nil for the current user. As root, it returns the user postgres if
// it exists, otherwise nobody, because PostgreSQL refuses to run as root.
func ServerUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil // A nil credential means the user of this process.
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and neither user postgres nor nobody exists to run the servers as")
}

// Prepare creates the data folder, owned by the servers' user.
func (h *Host) Prepare() error {
	_, err := h.folder("")
	return err
}

// folder creates a folder in the data folder, owned by the servers' user and closed to other users.
func (h *Host) folder(name string) (string, error) {
	path := filepath.Join(h.Dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return path, h.give(path)
}

// write creates a file that only the servers' user can read.
func (h *Host) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { //nolint:gosec // callers pass paths in folders of their own
		return err
	}
	return h.give(path)
}

func (h *Host) give(path string) error {
	if h.User == nil {
		return nil
	}
	return os.Chown(path, int(h.User.Uid), int(h.User.Gid))
}

// run runs a tool as the servers' user and waits for its end. An error contains the last line of the tool's output.
func (h *Host) run(ctx context.Context, dir, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, h.environment(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.User}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(path), err, lastLine(string(out)))
	}
	return nil
}

// environment returns the environment of a part. It inherits only PATH from ours.
func (h *Host) environment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TZ=UTC",
		"JAVA_HOME=" + os.Getenv("JAVA_HOME"), supervise.OwnerEnv + "=" + h.Mark,
	}
}

// startAttempts is how often a part is started if it ends during its start. Another process can use its port for a moment.
const startAttempts = 3

// await polls ready until it succeeds, the process ended startAttempts times, or 2 minutes passed: a machine with other work is slow.
func (h *Host) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if died := h.Group.Failed(name); died != nil && h.Group.Deaths(name) >= startAttempts {
			return fmt.Errorf("%s does not start: %w", name, died)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", name, err)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
