package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/proto"
)

// Limit is the rate limit of the measured gateways. No run reaches it.
const Limit = "1000000000"

// DatabasePrefix is the prefix of the services' databases.
const DatabasePrefix = "holdfast_"

const scratchPrefix = "holdfast-bench-"

var programs = append([]string{"local", "local-kafka", "local-stripe"}, proto.ServiceNames()...)

// Platform is a complete Holdfast with its own data, started by bin/local in a temporary checkout.
type Platform struct {
	Dir      string
	Env      map[string]string // of .run/env
	checkout string
	local    *Process
	others   []*Process
	events   *events // of Drain; nil before its first call
}

// Start starts the platform of the checkout's bin/ and returns when it is healthy. Call Stop even after an error.
func Start(ctx context.Context, checkout string) (*Platform, error) {
	p := &Platform{checkout: checkout}
	sweep() //nolint:contextcheck // it deletes what a killed run has left, regardless of this run
	var err error
	if p.Dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid())); err != nil {
		return p, err
	}
	if err := os.Chmod(p.Dir, 0o711); err != nil {
		return p, err
	}
	bin := filepath.Join(p.Dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return p, err
	}
	for _, name := range programs {
		if err := link(filepath.Join(checkout, "bin", name), filepath.Join(bin, name)); err != nil {
			return p, fmt.Errorf("bin/%s: %w (run `make build`)", name, err)
		}
	}
	p.local, err = start(program{
		name: "bin/local up", log: p.log("local"), path: filepath.Join(bin, "local"), args: []string{"up"},
		env: inherited("LOG=warn", "RATE_LIMIT_PER_MINUTE="+Limit, "OAUTH_RATE_LIMIT_PER_MINUTE="+Limit,
			"TRUSTED_PROXY_HOPS=1", "KAFKA_FULL_JIT=true", "HOLDFAST_PREFIX="+DatabasePrefix),
	})
	if err != nil {
		return p, err
	}
	err = p.local.await(ctx, 3*time.Minute, func(context.Context) (err error) {
		p.Env, err = readEnv(filepath.Join(p.Dir, ".run", "env"))
		return err
	})
	return p, err
}

// log returns the path of the output of a program.
func (p *Platform) log(name string) string { return filepath.Join(p.Dir, name+".log") }

// Stop stops every process and removes the data.
func (p *Platform) Stop() {
	p.events.close()
	for i := len(p.others) - 1; i >= 0; i-- {
		p.others[i].Stop()
	}
	p.local.Stop()
	if p.Dir != "" {
		discard(p.Dir)
	}
}

// PID returns the process id of one of the platform's processes.
func (p *Platform) PID(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(p.Dir, ".run", "pids", name)) //nolint:gosec // our own folder
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// PIDs returns the process ids of the platform's running processes by name, and those of the programs that Run has
// started.
func (p *Platform) PIDs() (own, others map[string]int) {
	own, others = map[string]int{}, map[string]int{}
	files, _ := filepath.Glob(filepath.Join(p.Dir, ".run", "pids", "*"))
	for _, file := range files {
		if pid, err := p.PID(filepath.Base(file)); err == nil { // else it was just restarted
			own[filepath.Base(file)] = pid
		}
	}
	for _, one := range p.others {
		others[one.name] = one.PID()
	}
	return own, others
}

// Settings returns the variables that a service was started with.
func (p *Platform) Settings(service string) (map[string]string, error) {
	return readEnv(filepath.Join(p.Dir, ".run", "services", service+".env"))
}

// URLs returns a service's URL of its database without the pooler, and the administrator's.
func (p *Platform) URLs(database string) (direct, admin *url.URL, err error) {
	direct, err = url.Parse(database)
	if err != nil {
		return nil, nil, err
	}
	if admin, err = url.Parse(p.Env["POSTGRES_URL"]); err != nil {
		return nil, nil, err
	}
	direct.Host, admin.Path = admin.Host, direct.Path
	return direct, admin, nil
}

// Admin connects to the database in a service's URL as the administrator.
func (p *Platform) Admin(ctx context.Context, database string) (*pgx.Conn, error) {
	_, admin, err := p.URLs(database)
	if err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, admin.String())
}

// Gateway starts another gateway of the platform with some changed settings, and writes its log to a file. It returns
// its address and that of its profiles.
func (p *Platform) Gateway(
	ctx context.Context, name string, changed map[string]string,
) (addr, profiles string, err error) {
	settings, err := p.Settings("gateway")
	if err != nil {
		return "", "", err
	}
	if addr, err = FreeAddr(); err != nil {
		return "", "", err
	}
	if profiles, err = FreeAddr(); err != nil {
		return "", "", err
	}
	settings["HTTP_ADDR"], settings["METRICS_ADDR"] = addr, profiles
	settings[proto.PublicService().State] = filepath.Join(p.Dir, name+".state") // the platform's gateway uses the other file
	settings["RATE_LIMIT_PER_MINUTE"], settings["PUBLIC_URL"] = Limit, "http://"+addr
	maps.Copy(settings, changed)
	var extra []string
	for key, value := range settings {
		extra = append(extra, key+"="+value)
	}
	err = p.Run(ctx, name, "http://"+addr+"/readyz", extra, filepath.Join(p.Dir, "bin", "gateway"), "serve")
	return addr, profiles, err
}

// Run starts a program, which Stop stops, and returns when the address responds. Its output goes to a file of that
// name. extra is added to the environment of this process.
func (p *Platform) Run(ctx context.Context, name, ready string, extra []string, path string, args ...string) error {
	one, err := start(program{name: name, env: inherited(extra...), log: p.log(name), path: path, args: args})
	if err != nil {
		return err
	}
	p.others = append(p.others, one)
	return one.await(ctx, 20*time.Second, func(ctx context.Context) error { return checkOK(ctx, ready) })
}

// Follow returns a function that returns the text that was added to a log since the call.
func (p *Platform) Follow(name string) func() (string, error) {
	path := filepath.Join(p.Dir, ".run/logs", name+".log")
	before, err := os.ReadFile(path)
	return func() (string, error) {
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(path)
		return string(text[min(len(before), len(text)):]), err
	}
}

// FreeAddr returns a loopback address whose port is free.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func checkOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // an address of our own processes
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req) //nolint:gosec // the same
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", url, res.Status)
	}
	return nil
}

// link creates the file at to: as a hard link, or as a copy if the file systems differ.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755) //nolint:gosec // our own folder
}

// sweep stops the processes and removes the files that killed runs left behind.
func sweep() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	for _, dir := range folders {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			discard(dir)
		}
	}
}

// discard makes bin/local stop the running processes of a folder and remove its data, which is in a different folder
// for root.
func discard(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	_ = exec.CommandContext(ctx, filepath.Join(dir, "bin", "local"), "clean").Run() //nolint:gosec // our own program
	_ = os.RemoveAll(dir)                                                           //nolint:gosec // the same
}

func readEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // our own folder
	vars := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			vars[key] = value
		}
	}
	return vars, err
}

// tail returns the last lines of a program's output.
func tail(path string) string {
	text, _ := os.ReadFile(path) //nolint:gosec // our own folder
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
