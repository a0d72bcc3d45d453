// Package testservers returns the addresses of the servers that tests use: PostgreSQL, Redis and Kafka. `make test` and `bin/local with`
// set them. Without them, the first test of a plain `go test` starts servers, which all test processes of the checkout share. They stop
// when no test has used them for a while.
package testservers

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Missing is the exit status of `local with --share` if a server is not installed.
const Missing = 69 // EX_UNAVAILABLE of BSD

// Names of files in the folder that the test processes of a checkout share.
const (
	EnvFile   = "env"   // the addresses, as lines NAME=value
	UsersFile = "users" // each process that uses the servers holds a shared lock on it
	startFile = "start" // locked by the process that starts the servers
)

// errMissing reports a server that is not installed.
var errMissing = errors.New("a server is missing")

// Getenv returns a variable with an address, such as TEST_REDIS_URL. If it is not set, Getenv starts the servers or uses those that run.
// It skips the test if they are not installed, or if they do not include this one.
func Getenv(t testing.TB, name string) string {
	t.Helper()
	if v := os.Getenv(name); v != "" {
		return v
	}
	if Inside() {
		t.Fatalf("%s is not set: run `make test`", name)
	}
	env, err := shared()
	switch {
	case errors.Is(err, errMissing):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	case env[name] == "":
		t.Skipf("%s is not set: run `make test`", name)
	}
	return env[name]
}

// users is open until the process ends: a file that is not reachable would be closed.
var users *os.File //nolint:unused // only written

// Inside reports whether `make test` or `bin/local with` runs the tests.
func Inside() bool {
	return slices.ContainsFunc([]string{"TEST_POSTGRES_URL", "TEST_REDIS_URL", "TEST_KAFKA_BROKERS"}, func(name string) bool { return os.Getenv(name) != "" })
}

// Tool returns the path of a program from the variable that `make test` sets. A plain `go test` skips the test without it.
func Tool(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	switch {
	case path == "" && Inside():
		t.Fatalf("%s is not set: run `make test`, which builds the tools", variable)
	case path == "":
		t.Skipf("%s is not set: run `make test`, which builds the tools", variable)
	}
	return path
}

// shared starts or finds the servers, once for this process, which uses them until it ends.
var shared = sync.OnceValues(func() (map[string]string, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-tests-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("test servers: %w", err)
	}
	if users, err = Lock(filepath.Join(dir, UsersFile), syscall.LOCK_SH); err != nil {
		return nil, err
	}
	start, err := Lock(filepath.Join(dir, startFile), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer func() { _ = start.Close() }()
	if env, err := read(dir); err == nil && alive(env["TEST_POSTGRES_URL"]) {
		return env, nil
	}
	return launch(root, dir)
})

// checkout returns the folder with the module's go.mod.
func checkout() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "services", "local", "main.go")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("the test runs outside a checkout")
		}
	}
	return "", fmt.Errorf("test servers: %w", err)
}

// Lock opens a file and locks it as flock(2) does with how. Closing the file unlocks it.
func Lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("test servers: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
	}
}

// launch builds and starts `local with --share`, and waits until the servers respond.
func launch(root, dir string) (map[string]string, error) {
	_ = os.Remove(filepath.Join(dir, EnvFile))
	for program, folder := range map[string]string{"local": "services/local", "local-kafka": "services/local/kafka"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "bin", program), "./"+folder)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", program, err, out)
		}
	}
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("test servers: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(dir, "bin", "local"), "with", "--share", dir)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test servers: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(path)
			if cmd.ProcessState.ExitCode() == Missing {
				return nil, fmt.Errorf("%w: %s", errMissing, strings.TrimSpace(string(text)))
			}
			return nil, fmt.Errorf("test servers do not start: %w: %s", err, strings.TrimSpace(string(text)))
		case <-time.After(50 * time.Millisecond):
			if env, err := read(dir); err == nil {
				return env, nil
			}
		}
	}
}

// read returns the variables of the servers.
func read(dir string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(dir, EnvFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	env := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		env[name] = value
	}
	return env, lines.Err()
}

// alive reports whether a server listens at the address of a URL. A killed process leaves its file.
func alive(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
