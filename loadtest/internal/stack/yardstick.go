package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Yardstick is a copy of the platform's PostgreSQL server with all its data and settings. It is stopped, except in Alone.
type Yardstick struct {
	platform   *Platform
	process    *Process
	suspension *suspension
	dir        string
	addr       string
}

var errServer = errors.New("the platform's PostgreSQL cannot be copied")

// server describes a running PostgreSQL server.
type server struct {
	bin  string   // folder of its programs
	args []string // of its command line
	data string
	user *syscall.Credential
}

// Yardstick copies the platform's PostgreSQL server as it is now, and starts the copy next to the data of the original, on the same
// file system. Call Stop when it is no longer needed.
func (p *Platform) Yardstick(ctx context.Context) (y *Yardstick, err error) {
	original, err := p.postgres()
	if err != nil {
		return nil, err
	}
	y = &Yardstick{platform: p, dir: filepath.Join(filepath.Dir(original.data), "yardstick")}
	defer func() {
		if err != nil {
			y.Stop()
		}
	}()
	if err := os.RemoveAll(y.dir); err != nil {
		return y, err
	}
	if err := p.backUp(ctx, original, y.dir); err != nil {
		return y, err
	}
	if y.addr, err = FreeAddr(); err != nil {
		return y, err
	}
	log, err := p.Log("yardstick")
	if err != nil {
		return y, err
	}
	args, err := original.moved(y.dir, y.addr)
	if err != nil {
		return y, err
	}
	y.process, err = start(program{
		name: "yardstick", env: serverEnv(), log: log, path: filepath.Join(original.bin, "postgres"), args: args,
		user: original.user, stop: syscall.SIGINT, // a fast shutdown
	})
	if err != nil {
		return y, err
	}
	err = y.process.await(ctx, 3*time.Minute, func(ctx context.Context) error { return accepts(ctx, y.URL(p.Env["POSTGRES_URL"])) })
	if err != nil {
		return y, fmt.Errorf("%w\n%s", err, tail(filepath.Join(p.Dir, "yardstick.log")))
	}
	y.suspension, err = suspend([]int{y.process.PID()}, always)
	return y, err
}

func always(int) bool { return true }

func serverEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC"}
}

// accepts checks that a server accepts connections.
func accepts(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// postgres returns the platform's running server.
func (p *Platform) postgres() (s server, err error) {
	pid, err := p.PID("postgres")
	if err != nil {
		return s, fmt.Errorf("%w: %w", errServer, err)
	}
	proc := fmt.Sprintf("/proc/%d", pid)
	line, err := os.ReadFile(filepath.Join(proc, "cmdline")) //nolint:gosec // of /proc
	if err != nil {
		return s, fmt.Errorf("%w: %w", errServer, err)
	}
	program, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil {
		return s, fmt.Errorf("%w: %w", errServer, err)
	}
	s.bin = filepath.Dir(program)
	s.args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")[1:]
	for i, arg := range s.args[:max(0, len(s.args)-1)] {
		if arg == "-D" {
			s.data = s.args[i+1]
		}
	}
	if s.data == "" {
		return s, fmt.Errorf("%w: no -D in its arguments %q", errServer, s.args)
	}
	if os.Geteuid() == 0 {
		info, err := os.Stat(s.data) //nolint:gosec // the argument of our own server
		if err != nil {
			return s, err
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return s, fmt.Errorf("%w: %s has no owner", errServer, s.data)
		}
		s.user = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return s, nil
}

// moved returns the server's arguments for another folder and address. All other settings stay the same.
func (s server) moved(dir, addr string) ([]string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	args, ports := make([]string, len(s.args)), 0
	for i, arg := range s.args {
		switch {
		case arg == s.data:
			arg = dir
		case strings.HasPrefix(arg, "port="):
			arg = "port=" + port
			ports++
		}
		args[i] = arg
	}
	if ports != 1 {
		return nil, fmt.Errorf("%w: %d ports in its arguments %q", errServer, ports, s.args)
	}
	return args, nil
}

// backUp writes a copy of the server's files into a new folder.
func (p *Platform) backUp(ctx context.Context, s server, dir string) error {
	from, err := url.Parse(p.Env["POSTGRES_URL"])
	if err != nil {
		return err
	}
	password, _ := from.User.Password()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_basebackup"), //nolint:gosec // next to the server that runs
		"--host", from.Hostname(), "--port", from.Port(), "--username", from.User.Username(), "--no-password", "--pgdata", dir,
		"--checkpoint", "fast", "--wal-method", "stream", "--no-manifest", "--no-sync")
	cmd.Env, cmd.Dir = append(serverEnv(), "PGPASSWORD="+password), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w\n%.1000s", errServer, err, out)
	}
	return nil
}

// URL returns the address of the copy of a database of the platform.
func (y *Yardstick) URL(original string) string {
	u, err := url.Parse(original)
	if err != nil {
		return original // the platform connects to it
	}
	u.Host = y.addr
	return u.String()
}

// CPU returns the processor time of the copy's processes so far.
func (y *Yardstick) CPU() (time.Duration, error) { return CPU(y.process.PID()) }

// Alone calls do while the copy runs and every process of the platform is stopped. It returns when the platform is ready again.
func (y *Yardstick) Alone(ctx context.Context, do func() error) error {
	platform, err := y.platform.suspend()
	if err != nil {
		return err
	}
	err = y.resumed(do)
	if err = errors.Join(err, platform.resume()); err != nil {
		return err
	}
	return y.platform.awaitReady(ctx)
}

// resumed calls do while the copy runs.
func (y *Yardstick) resumed(do func() error) error {
	if err := y.suspension.resume(); err != nil {
		return err
	}
	err := do()
	var stop error
	y.suspension, stop = suspend([]int{y.process.PID()}, always)
	return errors.Join(err, stop)
}

// Stop stops the copy and deletes its files.
func (y *Yardstick) Stop() {
	_ = y.suspension.resume()
	y.suspension = nil
	y.process.Stop()
	_ = os.RemoveAll(y.dir)
}
