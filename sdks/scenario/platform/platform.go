// Package platform starts a platform of its own for tests that observe it from outside: those of the SDKs and of the examples.
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

// ready is how long a platform may take to start.
const ready = 3 * time.Minute

// Platform is a running platform in a temporary folder.
type Platform struct {
	Root string            // the folder, with bin/ and .run/
	Env  map[string]string // the variables of .run/env, such as BASE_URL

	up   *exec.Cmd
	gone chan struct{} // closed when `local up` has ended
}

// Start starts a platform with the executables of `make build` in the folder bin, and with settings such as RATE_LIMIT_PER_MINUTE=1000.
// It returns when the platform is healthy.
func Start(bin string, settings ...string) (*Platform, error) {
	root, err := os.MkdirTemp("", "holdfast-platform-")
	if err != nil {
		return nil, err
	}
	if err := copyBinaries(bin, filepath.Join(root, "bin")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	p := &Platform{Root: root, gone: make(chan struct{})}
	p.up = p.command("up")
	p.up.Env = append(p.up.Env, settings...)
	log := &bytes.Buffer{} // read after the process has ended
	p.up.Stdout, p.up.Stderr = log, log
	if err := p.up.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	go func() {
		_ = p.up.Wait()
		close(p.gone)
	}()
	if err := p.await(); err != nil {
		p.Stop()
		return nil, fmt.Errorf("%w\n%s", err, log)
	}
	return p, nil
}

// Stop stops the platform and deletes its data.
func (p *Platform) Stop() {
	_ = p.up.Process.Signal(syscall.SIGINT)
	<-p.gone
	_ = p.command("clean").Run()
	_ = os.RemoveAll(p.Root)
}

// copyBinaries copies the executables that a checkout needs to run, because a checkout runs only one platform.
func copyBinaries(from, to string) error {
	names, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(names) == 0 {
		return errors.New("no executables: run `make build`")
	}
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // servers run as other users
		return err
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		copied := filepath.Join(to, filepath.Base(name))
		if os.Link(name, copied) == nil { // a copy is needed only on another device
			continue
		}
		text, err := os.ReadFile(name) //nolint:gosec // an executable of the checkout
		if err != nil {
			return err
		}
		if err := os.WriteFile(copied, text, 0o755); err != nil { //nolint:gosec // an executable
			return err
		}
	}
	return nil
}

// command returns a command of bin/local in the platform's folder, without the settings of another platform.
func (p *Platform) command(arg string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.Root, "bin", "local"), arg) //nolint:gosec,noctx // our executable; Stop ends it
	cmd.Dir = p.Root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DATABASE_URL", "REDIS_URL", "KAFKA_BROKERS", "GATEWAY_PORT", "HOLDFAST_PREFIX", "LOG"}, name)
	})
	cmd.Env = append(cmd.Env, "KAFKA=embedded")
	return cmd
}

// await waits for the file that the platform writes last, and reads its variables.
func (p *Platform) await() error {
	limit := time.After(ready)
	for {
		if text, err := os.ReadFile(filepath.Join(p.Root, ".run", "env")); err == nil {
			p.Env = map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				p.Env[name] = strings.Trim(value, `'"`)
			}
			return nil
		}
		select {
		case <-p.gone:
			return errors.New("`local up` ended")
		case <-limit:
			return fmt.Errorf("`local up` was not ready within %v", ready)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
