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

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
	"holdfast.dev/services/local/internal/terminal"
)

const both = "both"

// With starts private servers in a temporary folder, calls use with the variables that contain their addresses, and stops the servers.
func With(ctx context.Context, kafka string, pooler int, use func(ctx context.Context, env []string) error) error {
	base, err := scratchBase()
	if err != nil {
		return err
	}
	sweepScratch(base)
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Mkdir(logFolder(dir), 0o700); err != nil {
		return err
	}
	screen := terminal.New(os.Stderr, logFolder(dir))
	s := &Servers{
		screen: screen, state: state.Memory(), data: filepath.Join(dir, "data"), mark: dir, throwaway: true,
		group: &supervise.Group{Notice: screen.Say},
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	defer s.group.Stop()
	env, err := s.startForTests(ctx, kafka, pooler)
	if err != nil {
		return err
	}
	screen.Say("parts are ready")
	return use(ctx, env)
}

// startForTests starts the parts that tests require, and returns the variables with the addresses.
func (s *Servers) startForTests(ctx context.Context, kafka string, pooler int) ([]string, error) {
	kinds := []string{kafka}
	switch kafka {
	case both:
		kinds = []string{"auto", parts.Embedded}
	case "none":
		kinds = nil
	case "auto", parts.Apache, parts.Embedded:
	default:
		return nil, fmt.Errorf("--kafka must be auto, apache, embedded, both or none, not %q", kafka)
	}
	major := os.Getenv("TEST_POSTGRES")
	if major != "" && major != parts.NewestMajor {
		return nil, fmt.Errorf("TEST_POSTGRES must be %s, or not set for the installed PostgreSQL, not %q", parts.NewestMajor, major)
	}
	if err := s.startServers(ctx, serversConfig{kafka: kinds, newest: major != "", pooler: pooler}); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "TEST_POSTGRES_URL="+s.postgresURL, "TEST_REDIS_URL="+s.redisURL)
	if pooler > 0 {
		through, err := parts.Through(s.postgresURL, s.poolerPort)
		if err != nil {
			return nil, err
		}
		env = append(env, "TEST_POOLER_URL="+through)
	}
	if len(kinds) > 0 {
		env = append(env, "TEST_KAFKA_BROKERS="+s.brokers[0])
	}
	if kafka == both {
		env = append(env, "TEST_KAFKA_BROKERS_EMBEDDED="+s.brokers[1])
	}
	return env, nil
}

// scratchPrefix is the prefix of the name of a temporary folder. Our process id follows it.
const scratchPrefix = "holdfast-with-"

// scratchBase returns the folder for temporary folders. As root, it is a folder that the servers' user can access, because TMPDIR
// might not be.
func scratchBase() (string, error) {
	if os.Geteuid() != 0 {
		return os.TempDir(), nil
	}
	return parts.RootData, os.MkdirAll(parts.RootData, 0o755)
}

// sweepScratch removes the folders of killed runs.
func sweepScratch(base string) {
	folders, _ := filepath.Glob(filepath.Join(base, scratchPrefix+"*"))
	for _, folder := range folders {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), scratchPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}
