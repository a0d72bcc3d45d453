package tests

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	shell   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	servers = regexp.MustCompile(`(?m)^.*(?:--address|node ).*$`) // the commands that do not end
)

// readme returns the shell commands of a README.
func readme(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// checkout returns a folder that looks like a checkout in which `make up` runs.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == ".run" {
			continue
		}
		if err := os.Symlink(filepath.Join(root, e.Name()), filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(shared.Root, ".run"), filepath.Join(folder, ".run")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// bash runs commands in a folder and returns their output. Commands in the background end with the last one.
func bash(t *testing.T, folder, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // with a pipe, Run would wait for the commands in the background
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, with(), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	text, readErr := os.ReadFile(out.Name())
	if err = errors.Join(err, readErr); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, text)
	}
	return string(text)
}

// TestTheReadmeOfTheReceivers runs the commands of the README, with the receiver in Go and with the one in Python.
func TestTheReadmeOfTheReceivers(t *testing.T) {
	blocks := readme(t, "../receiver/README.md")
	if len(blocks) != 5 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	register, trigger, list := blocks[0], blocks[3], blocks[4]
	for language, start := range map[string]string{"go": blocks[1], "python": blocks[2]} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			start = servers.ReplaceAllString(start, "$0 &")
			awaitPort := "for i in {1..600}; do (exec 3<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null && break; sleep 0.1; done\n"
			awaitEvents := "for i in {1..300}; do " + strings.TrimSpace(list) + " | grep -q '\"changes\":2' && break; sleep 0.1; done\n"
			commands := strings.ReplaceAll(register+start+awaitPort+trigger+awaitEvents+list, "3000", port)
			if out := bash(t, checkout(t), commands); !regexp.MustCompile(`\n\{"id":"bk_\w+","version":2,"number":"B-\d+","status":"cancelled","date":"2031-05-01","changes":2\}\n`).MatchString(out) {
				t.Errorf("the receiver knows %s", out)
			}
		})
	}
}

// TestTheReadmeOfTheStorefront runs the commands of the README, and reads the offers from the server.
func TestTheReadmeOfTheStorefront(t *testing.T) {
	t.Parallel()
	blocks := readme(t, "../storefront/README.md")
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	port := freePort(t)
	start := servers.ReplaceAllString(blocks[0], "PORT="+port+" $0 &")
	commands := start + "curl -sS --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:" + port + "/shop\n"
	if out := bash(t, checkout(t), commands); !strings.Contains(out, `{"business":"Demo Boats","timezone":"America/New_York","packages":[{"id":"pkg_`) {
		t.Errorf("the server returns %s", out)
	}
}
