// Package terminal prints the progress of this program and the log lines of the processes that it started.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/services/local/internal/supervise"
)

// Console prints the stack's own progress and the lines of its processes: short and readable on a terminal, otherwise unchanged
// with the name of the process as a prefix.
type Console struct {
	out      io.Writer
	terminal bool
	colour   bool
	all      atomic.Pointer[time.Time] // show all lines of the services from this time on; nil: warnings only
	began    time.Time
	dir      string // folder of the log files; empty: none

	mu    sync.Mutex
	files map[string]*os.File
}

// New returns a console that prints to out, and writes the output of processes to log files in dir; "" for none.
func New(out *os.File, dir string) *Console {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &Console{
		out: out, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "",
		began: time.Now(), dir: dir, files: map[string]*os.File{},
	}
}

// Say prints one line of progress with the seconds since the start.
func (c *Console) Say(format string, args ...any) {
	c.Print(fmt.Sprintf("%6.1fs  ", time.Since(c.began).Seconds()) + fmt.Sprintf(format, args...))
}

// Print prints a text and a line break.
func (c *Console) Print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintln(c.out, text)
}

// PartLog returns the writer for a part's output: its log file only.
func (c *Console) PartLog(name string) io.Writer {
	file, err := c.file(name)
	if err != nil {
		return io.Discard
	}
	return file
}

// ServiceLog returns the writer for a service's output: its log file and the terminal.
func (c *Console) ServiceLog(name string) io.Writer {
	prefix := c.paint(name)
	return io.MultiWriter(c.PartLog(name), &supervise.LineWriter{Line: func(line []byte) {
		switch {
		case len(bytes.TrimSpace(line)) == 0, !grave(line) && !c.wants(line):
		case c.terminal:
			c.Print(readable(line, prefix, c.colour))
		default:
			c.Print(prefix + string(line))
		}
	}})
}

// ShowAll shows all lines of the services that are logged from this time on, and not only warnings.
func (c *Console) ShowAll(from time.Time) { c.all.Store(&from) }

// ShowWarnings shows only warnings of the services from now on.
func (c *Console) ShowWarnings() { c.all.Store(nil) }

// wants reports whether a line is shown because all lines are shown. Late startup lines are not shown after the greeting.
func (c *Console) wants(line []byte) bool {
	since := c.all.Load()
	if since == nil {
		return false
	}
	l, _, ok := parse(line)
	return ok && !l.Time.Before(*since)
}

func (c *Console) file(name string) (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		return nil, os.ErrNotExist
	}
	if f := c.files[name]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		c.files[name] = f
	}
	return f, err
}

// grave reports whether a line must be shown immediately: a warning, an error, or something that is not a log line, such as a
// panic.
func grave(line []byte) bool {
	return line[0] != '{' || bytes.Contains(line, []byte(`"level":"WARN"`)) || bytes.Contains(line, []byte(`"level":"ERROR"`))
}

var palette = []int{36, 32, 33, 35, 34, 31, 96, 92, 93, 95}

func (c *Console) paint(name string) string {
	text := fmt.Sprintf("%-10s| ", name)
	if !c.colour {
		return text
	}
	sum := 0
	for _, b := range []byte(name) {
		sum += int(b)
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", palette[sum%len(palette)], text)
}

// Tail returns the end of a log for an error message.
func (c *Console) Tail(name string, lines int) string {
	if c.dir == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	all = all[max(0, len(all)-lines):]
	for i := range all {
		all[i] = printable(all[i])
	}
	return strings.Join(all, "\n")
}
