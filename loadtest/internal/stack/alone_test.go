package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// heldFolder is the variable that makes this program hold a platform in a folder, for TestAnEndedRunLeavesNoProcess.
const heldFolder = "TEST_HELD_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(heldFolder); dir != "" {
		fmt.Println(hold(dir))
		return
	}
	os.Exit(m.Run())
}

// onlyPostgres starts a platform that consists of bin/local with PostgreSQL and Redis. Call Stop even after an error.
func onlyPostgres(ctx context.Context, dir string) (*Platform, error) {
	p := &Platform{Dir: dir}
	pids, env := filepath.Join(dir, ".run", "pids"), filepath.Join(dir, ".run", "env")
	if err := os.MkdirAll(pids, 0o700); err != nil {
		return p, err
	}
	const script = `echo "POSTGRES_URL=$TEST_POSTGRES_URL" >"$0.new" && mv "$0.new" "$0" && exec sleep 600`
	var err error
	p.local, err = start(program{
		name: "bin/local with", env: inherited(heldFolder + "="), log: p.log("local"), path: "../../../bin/local",
		args: []string{"with", "--kafka", "none", "--", "sh", "-c", script, env},
	})
	if err != nil {
		return p, fmt.Errorf("%w (run `make build`)", err)
	}
	err = p.local.await(ctx, time.Minute, func(context.Context) (err error) {
		p.Env, err = readEnv(env)
		return err
	})
	if err != nil {
		return p, err
	}
	below, err := children(p.local.PID())
	if err != nil {
		return p, err
	}
	for _, pid := range below {
		if program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(program) == "postgres" {
			return p, os.WriteFile(filepath.Join(pids, "postgres"), []byte(strconv.Itoa(pid)), 0o600)
		}
	}
	return p, fmt.Errorf("no PostgreSQL among %v", below)
}

func startPostgres(t *testing.T) *Platform {
	t.Helper()
	p, err := onlyPostgres(t.Context(), t.TempDir())
	t.Cleanup(p.Stop)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// query returns one value as text.
func query(ctx context.Context, url, sql string) (value string, err error) {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close(ctx) }()
	err = db.QueryRow(ctx, sql).Scan(&value)
	return value, err
}

// TestPostgresRunsAlone checks that PostgreSQL serves while the rest of the platform is stopped, and that the platform
// continues.
func TestPostgresRunsAlone(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	ctx, address := t.Context(), p.Env["POSTGRES_URL"]
	postgres, err := p.PID("postgres")
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("of the caller")
	err = p.Alone(ctx, func() error {
		if local, server := state(t, p.local.PID()), state(t, postgres); local != 'T' || server == 'T' {
			t.Errorf("bin/local is in state %q, PostgreSQL in %q", local, server)
		}
		if got, err := query(ctx, address, "select current_setting('max_connections')"); err != nil || got != "400" {
			t.Errorf("%q, %v", got, err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if got := state(t, p.local.PID()); got == 'T' {
		t.Errorf("afterwards, bin/local is in state %q", got)
	}
}

// hold stops a platform for its copy until a signal, as a run does, and prints the ids of their processes.
func hold(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := onlyPostgres(ctx, dir)
	defer p.Stop()
	if err != nil {
		return err
	}
	return p.Alone(ctx, func() error {
		if err := printTree(p.local.PID()); err != nil {
			return err
		}
		fmt.Println("held")
		<-ctx.Done()
		return ctx.Err()
	})
}

func printTree(pid int) error {
	fmt.Println(pid)
	below, err := children(pid)
	for _, child := range below {
		err = errors.Join(err, printTree(child))
	}
	return err
}

// TestAnEndedRunLeavesNoProcess interrupts, and kills, a run whose platform is stopped for pgbench.
func TestAnEndedRunLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			run := exec.Command(os.Args[0])
			run.Env = append(os.Environ(), heldFolder+"="+t.TempDir())
			run.Stderr = os.Stderr
			out, err := run.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = run.Wait() }()
			defer func() { _ = run.Process.Kill() }()
			var pids []int
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "held" {
				pid, err := strconv.Atoi(lines.Text())
				if err != nil {
					t.Fatal(lines.Text())
				}
				pids = append(pids, pid)
			}
			if len(pids) < 9 || state(t, pids[0]) != 'T' {
				t.Fatalf("the platform %v is in state %q", pids, state(t, pids[0]))
			}
			if err := run.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				for end := time.Now().Add(time.Minute); state(t, pid) != 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("process %d is in state %q", pid, state(t, pid))
					}
				}
			}
		})
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	const original = "postgres://app:secret@127.0.0.1:5501/holdfast_bookings?sslmode=disable"
	p := &Platform{Env: map[string]string{"POSTGRES_URL": "postgres://postgres:root@127.0.0.1:5501/postgres?sslmode=disable"}}
	pooled := strings.Replace(original, "5501", "6602", 1)
	direct, admin, err := p.URLs(pooled)
	if err != nil || direct.String() != original {
		t.Errorf("without the pooler: %s, %v", direct, err)
	}
	if err != nil || admin.String() != "postgres://postgres:root@127.0.0.1:5501/holdfast_bookings?sslmode=disable" {
		t.Errorf("of the administrator: %s, %v", admin, err)
	}
}
