// Package platform starts a platform for tests, with the executables of `make build`.
package platform

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Platform is a platform under test.
type Platform struct {
	Root    string            // its folder, with bin/ and .run/
	BaseURL string            // …/api/v1
	Key     string            // an API key of test mode
	Env     map[string]string // the variables of .run/env; nil if the test did not start it

	stop func()
}

// Stop stops a platform that Start has started, and deletes its data.
func (p *Platform) Stop() { p.stop() }

// Start starts a platform in a temporary folder. settings are variables of its environment, such as RATE_LIMIT_PER_MINUTE=1000.
func Start(settings ...string) (*Platform, error) {
	root, err := os.MkdirTemp("", "holdfast-scenario-")
	if err != nil {
		return nil, err
	}
	if err := copyBinaries(root); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	up := command(root, "up", settings...)
	log := &bytes.Buffer{} // read after the process has ended
	up.Stdout, up.Stderr = log, log
	if err := up.Start(); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		_ = up.Wait()
		close(gone)
	}()
	stop := func() {
		_ = up.Process.Signal(syscall.SIGINT)
		<-gone
		_ = command(root, "clean").Run()
		_ = os.RemoveAll(root)
	}
	env, err := await(filepath.Join(root, ".run", "env"), gone)
	if err != nil {
		stop()
		return nil, fmt.Errorf("%w\n%s", err, log)
	}
	return &Platform{root, env["BASE_URL"], env["DEMO_TEST_KEY"], env, stop}, nil
}

// ErrNotBuilt reports that the executables of a platform are missing.
var ErrNotBuilt = errors.New("no executables: run `make build`")

// Main returns the exit code of a test binary whose platform did not start. A plain `go test` of a checkout without executables skips it.
func Main(err error) int {
	if errors.Is(err, ErrNotBuilt) && os.Getenv("TEST_POSTGRES_URL") == "" {
		fmt.Println("skipped:", err)
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Checkout returns the folder above the working folder that has the executables of `make build`.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "bin", "local")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNotBuilt
		}
		dir = parent
	}
}

// copyBinaries copies the executables that a checkout needs to run, because a checkout runs only one platform.
func copyBinaries(root string) error {
	checkout, err := Checkout()
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(checkout, "bin", "*"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		to := filepath.Join(root, "bin", filepath.Base(name))
		if os.Link(name, to) == nil { // a copy is needed only on another device
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o755); err != nil { //nolint:gosec // the executables of this checkout
			return err
		}
	}
	return nil
}

// command returns a command of bin/local in a folder, without the settings of another platform.
func command(root, arg string, settings ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, "bin", "local"), arg)
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DATABASE_URL", "REDIS_URL", "KAFKA_BROKERS", "GATEWAY_PORT", "HOLDFAST_PREFIX", "LOG"}, name)
	})
	cmd.Env = append(append(cmd.Env, "KAFKA=embedded"), settings...)
	return cmd
}

// await waits for the file that the platform writes last, and returns its variables.
func await(path string, gone chan struct{}) (map[string]string, error) {
	limit := time.After(3 * time.Minute)
	for {
		if text, err := os.ReadFile(path); err == nil {
			env := map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				env[name] = strings.Trim(value, `'"`)
			}
			return env, nil
		}
		select {
		case <-gone:
			return nil, errors.New("`local up` ended")
		case <-limit:
			return nil, errors.New("`local up` was not ready within 3 minutes")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
