package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	say      func(string, ...any)
	checkout string
	local    *Process
	others   []*Process
	closers  []io.Closer
	events   *events // of Drain; nil before its first call
}

// Start starts the platform of the checkout's bin/ and returns when it is healthy. Call Stop even after an error.
func Start(ctx context.Context, checkout string, say func(string, ...any)) (*Platform, error) {
	p := &Platform{say: say, checkout: checkout}
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
	if err := writable(p.sockets()); err != nil {
		return p, err
	}
	log, err := p.Log("local")
	if err != nil {
		return p, err
	}
	shown := &progress{log: log, say: say}
	p.local, err = start(program{
		name: "bin/local up", env: inherited("LOG=warn", "RATE_LIMIT_PER_MINUTE="+Limit, "KAFKA_FULL_JIT=true", "HOLDFAST_PREFIX="+DatabasePrefix, "POSTGRES_SOCKETS="+p.sockets()),
		log: shown, path: filepath.Join(bin, "local"), args: []string{"up"},
	})
	if err != nil {
		return p, err
	}
	err = p.local.await(ctx, 3*time.Minute, func(context.Context) error {
		var err error
		p.Env, err = readEnv(filepath.Join(p.Dir, ".run", "env"))
		return err
	})
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, tail(filepath.Join(p.Dir, "local.log")))
	}
	return p, err
}

// sockets returns the folder of the PostgreSQL's Unix socket.
func (p *Platform) sockets() string { return filepath.Join(p.Dir, "sockets") }

// writable creates a folder in which every user can create files.
func writable(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777|os.ModeSticky)
}

// Stop stops every process and removes the data.
func (p *Platform) Stop() {
	p.events.close()
	for i := len(p.others) - 1; i >= 0; i-- {
		p.others[i].Stop()
	}
	p.local.Stop()
	for _, c := range p.closers {
		_ = c.Close()
	}
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

// Settings returns the variables that a service was started with.
func (p *Platform) Settings(service string) (map[string]string, error) {
	return readEnv(filepath.Join(p.Dir, ".run", "services", service+".env"))
}

// AdminURL returns the administrator's URL of the database in a service's URL.
func (p *Platform) AdminURL(database string) (string, error) {
	of, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	admin, err := url.Parse(p.Env["POSTGRES_URL"])
	if err != nil {
		return "", err
	}
	admin.Path = of.Path
	return admin.String(), nil
}

// Admin connects to the database in a service's URL as the administrator.
func (p *Platform) Admin(ctx context.Context, database string) (*pgx.Conn, error) {
	address, err := p.AdminURL(database)
	if err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, address)
}

// LogFile returns the path of a process's log.
func (p *Platform) LogFile(name string) string {
	return filepath.Join(p.Dir, ".run/logs", name+".log")
}

// Gateway starts another gateway of the platform with some changed settings, and writes its log to a file. It returns the gateway
// with its address and the address of its profiles.
func (p *Platform) Gateway(ctx context.Context, name string, changed map[string]string) (g *Process, addr, profiles string, err error) {
	settings, err := p.Settings("gateway")
	if err != nil {
		return nil, "", "", err
	}
	if addr, err = FreeAddr(); err != nil {
		return nil, "", "", err
	}
	if profiles, err = FreeAddr(); err != nil {
		return nil, "", "", err
	}
	settings["HTTP_ADDR"], settings["METRICS_ADDR"] = addr, profiles
	settings[proto.PublicService().State] = filepath.Join(p.Dir, name+".state") // the platform's gateway uses the other file
	settings["RATE_LIMIT_PER_MINUTE"], settings["PUBLIC_URL"] = Limit, "http://"+addr
	for key, value := range changed {
		settings[key] = value
	}
	g, err = p.Run(ctx, name, "http://"+addr+"/readyz", flat(settings), filepath.Join(p.Dir, "bin", "gateway"), "serve")
	return g, addr, profiles, err
}

// Run starts a program, which Stop stops, and returns when the address responds. Its output goes to a file of that name. extra is
// added to the environment of this process.
func (p *Platform) Run(ctx context.Context, name, ready string, extra []string, path string, args ...string) (*Process, error) {
	log, err := p.Log(name)
	if err != nil {
		return nil, err
	}
	one, err := start(program{name: name, env: inherited(extra...), log: log, path: path, args: args})
	if err != nil {
		return nil, err
	}
	p.others = append(p.others, one)
	err = one.await(ctx, 20*time.Second, func(ctx context.Context) error { return checkOK(ctx, ready) })
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(filepath.Join(p.Dir, name+".log")))
	}
	return one, nil
}

// Follow returns a function that returns the text that was added to a log since the call.
func (p *Platform) Follow(name string) func() (string, error) {
	path := p.LogFile(name)
	info, err := os.Stat(path)
	return func() (string, error) {
		if err != nil {
			return "", err
		}
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.NewSectionReader(f, info.Size(), 16<<20))
		return string(text), err
	}
}

// Log opens a log file. Stop closes it.
func (p *Platform) Log(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(p.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in our own folder
	if err == nil {
		p.closers = append(p.closers, f)
	}
	return f, err
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
	in, err := os.Open(from) //nolint:gosec // a program of the checkout
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
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

// discard makes bin/local stop the running processes of a folder and remove its data, which is in a different folder for root.
func discard(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	_ = exec.CommandContext(ctx, filepath.Join(dir, "bin", "local"), "clean").Run() //nolint:gosec // our own program
	_ = os.RemoveAll(dir)                                                           //nolint:gosec // the same
}

func flat(settings map[string]string) []string {
	var out []string
	for key, value := range settings {
		out = append(out, key+"="+value)
	}
	return out
}

func readEnv(path string) (map[string]string, error) {
	f, err := os.Open(path) //nolint:gosec // our own folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	vars := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			vars[key] = value
		}
	}
	return vars, lines.Err()
}

func tail(path string) string {
	text, _ := os.ReadFile(path) //nolint:gosec // our own folder
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
