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
	"slices"
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
	program, data string
	args          []string
	user          *syscall.Credential
}

// Yardstick copies the platform's PostgreSQL server as it is now, and starts the copy next to the data of the original, on the same
// file system. Call Stop when it is no longer needed.
func (p *Platform) Yardstick(ctx context.Context) (y *Yardstick, err error) {
	original, err := p.postgres()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errServer, err)
	}
	y = &Yardstick{platform: p, dir: filepath.Join(filepath.Dir(original.data), "yardstick")}
	defer func() {
		if err != nil {
			y.Stop()
		}
	}()
	if err := p.copyData(ctx, original.data, y.dir); err != nil {
		return y, fmt.Errorf("%w: %w", errServer, err)
	}
	if y.addr, err = FreeAddr(); err != nil {
		return y, err
	}
	_, port, _ := net.SplitHostPort(y.addr)
	y.process, err = start(program{
		name: "yardstick", env: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC"}, log: p.log("yardstick"), path: original.program,
		args: append(original.args, "-D", y.dir, "-c", "port="+port), // the last value of a setting applies
		user: original.user, stop: syscall.SIGINT,                    // a fast shutdown
	})
	if err != nil {
		return y, err
	}
	err = y.process.await(ctx, 3*time.Minute, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, y.URL(p.Env["POSTGRES_URL"]))
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
	if err != nil {
		return y, err
	}
	y.suspension, err = suspend(y.process.PID())
	return y, err
}

// postgres returns the platform's running server.
func (p *Platform) postgres() (s server, err error) {
	pid, err := p.PID("postgres")
	if err != nil {
		return s, err
	}
	proc := fmt.Sprintf("/proc/%d", pid)
	if s.program, err = os.Readlink(filepath.Join(proc, "exe")); err != nil {
		return s, err
	}
	line, err := os.ReadFile(filepath.Join(proc, "cmdline")) //nolint:gosec // of /proc
	if err != nil {
		return s, err
	}
	s.args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")[1:]
	at := slices.Index(s.args, "-D") + 1
	if at == 0 || at == len(s.args) {
		return s, fmt.Errorf("no -D in the arguments %q", s.args)
	}
	s.data = s.args[at]
	if os.Geteuid() != 0 {
		return s, nil
	}
	info, err := os.Stat(s.data) //nolint:gosec // the argument of our own server
	if err != nil {
		return s, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok { // PostgreSQL does not run as root
		s.user = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return s, nil
}

// copyData copies the server's files while the platform is stopped. PostgreSQL recovers from the copy as after a crash, and the
// checkpoint makes that quick.
func (p *Platform) copyData(ctx context.Context, from, to string) error {
	db, err := pgx.Connect(ctx, p.Env["POSTGRES_URL"])
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, "checkpoint")
	if err = errors.Join(err, db.Close(ctx)); err != nil {
		return err
	}
	return p.stopped(ctx, func() error {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "cp", "-a", from, to)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %.1000s", err, out)
		}
		return os.Remove(filepath.Join(to, "postmaster.pid"))
	})
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
	return y.platform.stopped(ctx, func() error { return y.resumed(do) })
}

// resumed calls do while the copy runs.
func (y *Yardstick) resumed(do func() error) error {
	if err := y.suspension.resume(); err != nil {
		return err
	}
	err := do()
	var stop error
	y.suspension, stop = suspend(y.process.PID())
	return errors.Join(err, stop)
}

// Stop stops the copy and deletes its files.
func (y *Yardstick) Stop() {
	_ = y.suspension.resume()
	y.suspension = nil
	y.process.Stop()
	_ = os.RemoveAll(y.dir) //nolint:gosec // our own folder
}

// stopped calls do while all processes of the platform, and those that Run has started, are stopped. It returns when the services are
// ready again.
func (p *Platform) stopped(ctx context.Context, do func() error) error {
	pids := []int{p.local.PID()} // all other processes of the platform are its descendants
	for _, one := range p.others {
		pids = append(pids, one.PID())
	}
	s, err := suspend(pids...)
	if err != nil {
		return err
	}
	if err := errors.Join(do(), s.resume()); err != nil {
		return err
	}
	return p.awaitReady(ctx)
}

// readyLimit is how long the services may take until they are ready after they were stopped.
const readyLimit = 30 * time.Second

// awaitReady waits until every service reports that it is ready.
func (p *Platform) awaitReady(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.Dir, ".run", "services", "*.env"))
	if err != nil {
		return err
	}
	for _, file := range files {
		settings, err := readEnv(file)
		if err != nil {
			return err
		}
		addr := settings["HTTP_ADDR"]
		if addr == "" { // the stand-in for Stripe, whose settings have a prefix
			continue
		}
		if err := p.local.await(ctx, readyLimit, func(ctx context.Context) error { return checkOK(ctx, "http://"+addr+"/readyz") }); err != nil {
			return err
		}
	}
	return nil
}
