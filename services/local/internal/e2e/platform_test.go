// Package e2e tests the guarantees of the whole platform: it starts `local up` in a separate folder, with real PostgreSQL, Redis,
// and Kafka, kills processes, and observes from outside. With HOLDFAST_CLUSTER, it tests the platform of `make kind-install`
// instead, through the gateway's Service.
package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/cluster"
)

// binaries are all executables that a checkout needs to run.
var binaries = append([]string{"local", "local-kafka", "local-stripe", "holdfast"}, proto.ServiceNames()...)

// The platform that most tests share. It uses Apache Kafka if a JDK and Maven are installed.
var shared *platform

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if folder := os.Getenv("HOLDFAST_CLUSTER"); folder != "" {
		var err error
		if shared, err = openCluster(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	var err error
	if shared, err = newPlatform(); errors.Is(err, fs.ErrNotExist) && os.Getenv("TEST_POSTGRES_URL") == "" {
		fmt.Println("skipped:", err)
		return 0
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.remove()
	if os.Getenv("DRILL") != "" || os.Getenv("TEST_FAILOVER") != "" || os.Getenv("HISTORY") != "" { // these tests have platforms of their own
		return m.Run()
	}
	if err := shared.up(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// platform is one checkout: a folder with executables, and the running `local up`.
type platform struct {
	root     string
	settings []string // environment in addition to ours
	user     *syscall.Credential
	env      map[string]string // .run/env
	cmd      *exec.Cmd
	gone     chan struct{} // closed when `local up` has ended
	log      *transcript
	cluster  *cluster.Cluster // nil: processes of `local up`
}

// transcript is the output of a process, readable while the process runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// newPlatform creates a checkout from the executables of `make build`.
func newPlatform(settings ...string) (*platform, error) {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		return nil, err
	}
	for _, name := range binaries {
		b, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			return nil, fmt.Errorf("%w: run `make build`", err)
		}
		if err := os.WriteFile(filepath.Join(root, "bin", name), b, 0o755); err != nil {
			return nil, err
		}
	}
	return &platform{root: root, settings: settings}, nil
}

// command returns a command for one of the checkout's executables, in its folder.
func (p *platform) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.root, "bin", name), args...)
	cmd.Dir = p.root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DATABASE_URL", "REDIS_URL", "KAFKA_BROKERS", "KAFKA", "GATEWAY_PORT", "HOLDFAST_PREFIX", "LOG"}, name)
	})
	cmd.Env = append(cmd.Env, "RATE_LIMIT_PER_MINUTE=1000000", "RECONCILE_GRACE=1s", "HOME="+p.home())
	cmd.Env = append(cmd.Env, "GOMEMLIMIT=230MiB") // nine tenths of the chart's memory limit, as in a container
	cmd.Env = append(cmd.Env, p.settings...)
	if p.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user}
	}
	return cmd
}

// holdfast returns a command of the command line, with the key of a variable in .run/env.
func (p *platform) holdfast(key string, args ...string) *exec.Cmd {
	cmd := p.command("holdfast", args...)
	cmd.Env = append(cmd.Env, "HOLDFAST_BASE_URL="+p.env["BASE_URL"], "HOLDFAST_API_KEY="+p.env[key],
		"STRIPE_URL="+p.env["STRIPE_URL"], "STRIPE_PUBLISHABLE_KEY="+p.env["STRIPE_PUBLISHABLE_KEY"])
	return cmd
}

func (p *platform) home() string {
	if p.user != nil {
		return p.root
	}
	return os.Getenv("HOME")
}

// begin starts `local up` and does not wait.
func (p *platform) begin() error {
	p.log, p.gone = &transcript{}, make(chan struct{})
	p.cmd = p.command("local", "up")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(p.cmd, p.gone)
	return nil
}

// up starts the platform and waits for .run/env, which is written last.
func (p *platform) up() error {
	if err := p.begin(); err != nil {
		return err
	}
	limit := time.After(3 * time.Minute)
	for {
		env, err := readEnv(p.path("env"))
		if err == nil {
			p.env = env
			return nil
		}
		select {
		case <-p.gone:
			return fmt.Errorf("`local up` ended\n%s", p.log)
		case <-limit:
			p.down()
			return fmt.Errorf("`local up` was not ready within 3 minutes\n%s", p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// down interrupts `local up` like Ctrl-C and waits until it ends.
func (p *platform) down() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.gone:
	case <-time.After(60 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

// remove stops the platform and deletes its files.
func (p *platform) remove() {
	p.down()
	_ = p.command("local", "clean").Run()
	_ = os.RemoveAll(p.root)
}

// path returns a path in .run/.
func (p *platform) path(name ...string) string {
	return filepath.Join(append([]string{p.root, ".run"}, name...)...)
}

func readEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[key] = value
	}
	return env, nil
}

// pid returns the process's current id from its pid file; 0 if there is none.
func (p *platform) pid(process string) int {
	b, err := os.ReadFile(p.path("pids", process))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// signal signals a process of the platform. It waits for a process that is being restarted.
func (p *platform) signal(t *testing.T, process string, sig syscall.Signal) {
	t.Helper()
	if p.cluster != nil {
		p.signalPods(t, process, sig)
		return
	}
	await(t, process+" runs", func() bool { return p.pid(process) != 0 })
	pid := p.pid(process)
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("%v to %s (%d): %v", sig, process, pid, err)
	}
}

// kill ends a process immediately. The supervisor restarts it.
func (p *platform) kill(t *testing.T, process string) {
	t.Helper()
	p.signal(t, process, syscall.SIGKILL)
}

// broker returns the name of the platform's Kafka process.
func (p *platform) broker() string {
	if p.cluster != nil || p.pid("kafka") != 0 {
		return "kafka"
	}
	return "kafka-embedded"
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within 40 s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
