// Package e2e attacks the promises on the whole platform: it starts `local up` in a folder of its own, with
// real PostgreSQL, Redis and Kafka, kills what the tests name, and looks from outside.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/proto"
)

// started is the one platform of this test process.
var started struct {
	root string
	env  map[string]string
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := os.Stat(filepath.Join(bin, "local")); err != nil {
		fmt.Fprintln(os.Stderr, "bin/local is missing: run `make build`")
		return 1
	}
	root, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(root) }()
	if err := copyBinaries(bin, filepath.Join(root, "bin")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started.root = root
	defer clean(root)
	if err := up(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer down()
	return m.Run()
}

func copyBinaries(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"local", "local-kafka", "gateway", "identity", "bookings", "customers"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return fmt.Errorf("%w: run `make build`", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func up(root string) error {
	started.log = &bytes.Buffer{}
	cmd := exec.Command(filepath.Join(root, "bin", "local"), "up")
	cmd.Env = append(os.Environ(), "LOCAL_LOGS=warn", "RATE_LIMIT_PER_MINUTE=1000000", "DATABASE_URL=", "REDIS_URL=", "KAFKA_BROKERS=")
	cmd.Stdout, cmd.Stderr = started.log, started.log
	if err := cmd.Start(); err != nil {
		return err
	}
	started.cmd = cmd
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		select {
		case err := <-gone:
			return fmt.Errorf("`local up` ended: %w\n%s", err, started.log)
		default:
		}
		if env, err := readEnv(filepath.Join(root, ".run", "env")); err == nil {
			started.env = env
			return nil
		}
	}
	down()
	return fmt.Errorf("`local up` was not ready within 3 minutes\n%s", started.log)
}

func down() {
	_ = started.cmd.Process.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if started.cmd.Process.Signal(syscall.Signal(0)) != nil {
			return
		}
	}
	_ = started.cmd.Process.Kill()
}

func clean(root string) {
	_ = exec.Command(filepath.Join(root, "bin", "local"), "clean").Run()
}

func readEnv(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	env := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			env[key] = value
		}
	}
	return env, nil
}

// kill ends a process of the platform at once; the supervisor starts it again.
func kill(t *testing.T, process string) {
	t.Helper()
	pid := pidOf(t, process)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("kill %s (%d): %v", process, pid, err)
	}
}

func pidOf(t *testing.T, process string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(started.root, ".run", "pids", process))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// answer is one HTTP answer, read whole.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// code is error.code, "" on success.
func (a answer) code() string {
	var e struct {
		Error struct{ Code string } `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &e)
	return e.Error.Code
}

// client speaks to the platform with one key and checks each answer against the contract.
type client struct {
	key     string
	checker *contracttest.Checker
}

func as(t *testing.T, name string) *client {
	t.Helper()
	key := started.env[name]
	if key == "" {
		t.Fatalf(".run/env has no %s", name)
	}
	return &client{key: key, checker: contracttest.New(t, proto.OpenAPI)}
}

var httpClient = &http.Client{Timeout: 30 * time.Second}

// try sends one request; a transport error is returned, not fatal.
func (c *client) try(t *testing.T, method, path, body string, header map[string]string) (answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, started.env["BASE_URL"]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	c.checker.Check(t, req, res, b)
	return answer{Status: res.StatusCode, Header: res.Header, Body: b}, nil
}

func (c *client) do(t *testing.T, method, path, body string, header map[string]string) answer {
	t.Helper()
	a, err := c.try(t, method, path, body, header)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) want(t *testing.T, status int, method, path, body string) answer {
	t.Helper()
	a := c.do(t, method, path, body, nil)
	if a.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	return a
}

// list is any list page.
type list struct {
	Data []map[string]any `json:"data"`
}

func (c *client) list(t *testing.T, path string) []map[string]any {
	t.Helper()
	var l list
	c.want(t, http.StatusOK, http.MethodGet, path, "").decode(t, &l)
	return l.Data
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
