package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// terminal is a shell in a real terminal, that of tmux.
type terminal struct {
	t   *testing.T
	env []string
}

// newTerminal starts bash in a terminal with a width, with the environment of a tool.
func newTerminal(t *testing.T, c tool, width int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is missing: run `apt-get install tmux` as root")
	}
	term := &terminal{t, append(c.env, "TMUX_TMPDIR="+t.TempDir(), "LANG=C.UTF-8", "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))}
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", "100", "env PS1='ready$ ' HISTFILE= bash --norc --noprofile")
	processes := strings.Fields(term.tmux("display-message", "-p", "#{pid} #{pane_pid}"))
	t.Cleanup(func() { // before the folders of the test are deleted
		term.tmux("kill-server")
		for _, process := range processes {
			await(context.Background(), t, "the end of the process "+process, func() bool {
				_, err := os.Stat("/proc/" + process)
				return os.IsNotExist(err)
			})
		}
	})
	term.shows("ready$")
	return term
}

// tmux runs a command of tmux and returns its output.
func (t *terminal) tmux(args ...string) string {
	t.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u"}, args...)...)
	cmd.Env = t.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.t.Fatalf("tmux %q: %v %s", args, err, out)
	}
	return string(out)
}

// types clears the screen, types a line and presses Enter.
func (t *terminal) types(line string) {
	t.t.Helper()
	t.tmux("clear-history")
	t.tmux("send-keys", "-R", "-l", line)
	t.tmux("send-keys", "Enter")
}

// screen returns the text of the terminal. With styles, it has escape sequences.
func (t *terminal) screen(styles bool) string {
	t.t.Helper()
	args := []string{"capture-pane", "-p"}
	if styles {
		args = append(args, "-e")
	}
	return t.tmux(args...)
}

// shows waits until the terminal has all texts, and returns its screen.
func (t *terminal) shows(texts ...string) string {
	t.t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		screen := t.screen(false)
		all := true
		for _, text := range texts {
			all = all && strings.Contains(screen, text)
		}
		if all {
			return screen
		}
		if time.Now().After(limit) {
			t.t.Fatalf("the terminal does not show %q:\n%s", texts, screen)
		}
	}
}

// TestTablesInATerminal checks that tables are the default of a terminal, fit into it, and have colors unless NO_COLOR is set.
func TestTablesInATerminal(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Key)
	evil := "\x1b[31mred\x1b]0;title\a \u202eevil"
	id := c.ok("units", "create", "-d", fmt.Sprintf(`{"name":"Wide 漢字","description":%q}`, "d"), "--jq", ".id")
	for range 2 { // no other test books so late
		c.ok("bookings", "create", "--event-date", "2187-01-01", "--unit-id", id, "--event-start-time", "09:00", "--event-end-time", "10:00", "--notes", evil)
		id = c.ok("units", "create", "--name", "Wide 漢字", "--jq", ".id")
	}
	list := "holdfast bookings list --event-date-from 2187-01-01 --limit 1 "
	for _, width := range []int{60, 120} {
		term := newTerminal(t, c, width)
		term.types(list + "; echo code $?")
		screen := term.shows("code 0")
		if wide := strings.Contains(screen, "UNIT") && strings.Contains(screen, "Wide 漢字"); !strings.Contains(screen, "\nID ") || !strings.Contains(screen, "STATUS") || wide != (width == 120) {
			t.Errorf("%d columns:\n%s", width, screen)
		}
		if !strings.Contains(screen, "\nThere are more rows") { // a row that does not fit would continue in a line of its own
			t.Errorf("%d columns:\n%s", width, screen)
		}
		for line := range strings.Lines(screen) {
			if strings.HasPrefix(line, "ID ") != strings.Contains(line, "CUSTOMER") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if styled := term.screen(true); !strings.Contains(styled, "\x1b[1m") {
			t.Errorf("no colors: %q", styled)
		}
	}
	term := newTerminal(t, c.with("NO_COLOR=1"), 120)
	term.types("holdfast units list --all; echo code $?")
	term.shows("code 0", id, "漢字")
	if styled := term.screen(true); strings.Contains(styled, "\x1b[1m") {
		t.Errorf("colors in spite of NO_COLOR: %q", styled)
	}
	list += "-o "
	for format, choice := range map[string]string{"table": "--columns notes", "json": "--jq '.data[0].notes'", "yaml": ""} {
		term.types(list + format + " " + choice + "; echo code $?")
		if screen := term.shows("code 0", `\u001b`, `\u202e`); strings.Contains(term.screen(true), "\x1b[31m") {
			t.Errorf("%s: text of the platform controls the terminal: %s", format, screen)
		}
	}
	term.types("holdfast invoices get-pdf inv_1 --file -; echo code $?")
	term.shows("which a terminal cannot show: pass --file FILE", "code 2")
}

// TestPromptsInATerminal checks the prompt for an API key, which is not shown, and the confirmation of live mode.
func TestPromptsInATerminal(t *testing.T) {
	t.Parallel()
	c := bare(t)
	term := newTerminal(t, c, 200)
	term.types("holdfast login --api-key --base-url " + shared.BaseURL + "; echo code $?")
	term.shows("API key:")
	term.tmux("send-keys", "C-c")
	term.shows("code 130")
	term.types(`echo hidden $(stty -a | grep -c -- '-echo ')`)
	term.shows("hidden 0") // the terminal shows again what the user types
	term.types("holdfast login --api-key --base-url " + shared.BaseURL + "; echo code $?")
	term.shows("API key:")
	key, email := shared.Env["DEMO_LIVE_KEY"], unique()+"@example.com"
	term.tmux("send-keys", "-l", key)
	term.tmux("send-keys", "Enter")
	if screen := term.shows("Logged in to Demo Boats", "live mode", "code 0"); strings.Contains(screen, key) {
		t.Errorf("the key is shown: %s", screen)
	}
	for _, tc := range []struct{ response, want string }{{"n", "code 9"}, {"", "code 9"}, {"y", "code 0"}} {
		term.types("holdfast customers create --first-name Asked --email " + email + "; echo code $?")
		term.shows("Live mode: POST /customers changes live data of Demo Boats. Continue? [y/N]")
		term.tmux("send-keys", tc.response, "Enter")
		if screen := term.shows(tc.want); strings.Contains(screen, email+"\n") != (tc.response == "y") {
			t.Errorf("%q: %s", tc.response, screen)
		}
	}
	term.types("holdfast customers create --first-name Asked --email " + email + "; echo code $?")
	term.shows("[y/N]")
	term.tmux("send-keys", "C-c")
	term.shows("code 130")
	if got := c.ok("customers", "list", "--email", email, "--jq", ".data | length"); got != "1" {
		t.Errorf("%s customers", got)
	}
}

// TestListenInATerminal stops listen with Ctrl-C.
func TestListenInATerminal(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, withKey(t, shared.Key), 120)
	term.types("holdfast listen; echo code $?")
	term.shows("listening for events of test mode")
	term.tmux("send-keys", "C-c")
	term.shows("code 0")
}

// TestCompletion completes commands, flags and values of enumerations in bash, and no IDs.
func TestCompletion(t *testing.T) {
	t.Parallel()
	c := bare(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := c.ok("completion", shell); !strings.Contains(got, "holdfast") {
			t.Errorf("%s: %.100s", shell, got)
		}
	}
	for args, want := range map[string]string{
		"bookings can":                     "cancel\tCancel a booking.\n:4",
		"bookings list --status pen":       "pending\nconfirmed\nexpired\ncancelled\ncanceled\ncompleted\nno_show\n:4",
		"bookings list -o ":                "table\njson\nyaml\ncsv\n:4",
		"bookings get ":                    ":4",
		"trigger invoice.":                 "invoice.created\ninvoice.paid\n:4",
		"bookings create --base-price.amo": ":4",
		"packages create --base-price.amo": "--base-price.amount\tAmount in the currency's smallest unit, such as cents: 0 to 99,999,999,999. Required.\n:4",
	} {
		fields := strings.Split(args, " ")
		r := c.run("", append([]string{"__complete"}, fields...)...)
		if strings.TrimSpace(r.out) != want {
			t.Errorf("%s: %q, want %q", args, r.out, want)
		}
	}
}

// TestManualPages writes the manual pages.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	bare(t).ok("man", dir)
	for page, text := range map[string]string{"holdfast.1": "login", "holdfast-bookings-create.1": "--event-date", "holdfast-listen.1": "--forward-to"} {
		got, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil || !strings.Contains(string(got), text) {
			t.Errorf("%s: %v %.300s", page, err, got)
		}
	}
}
