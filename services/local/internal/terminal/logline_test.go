package terminal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

// at returns the time of the lines below as the terminal shows it.
func at(t *testing.T) string {
	t.Helper()
	return time.Date(2026, 5, 4, 10, 20, 30, 123456789, time.UTC).Local().Format("15:04:05.000")
}

func TestReadable(t *testing.T) {
	t.Parallel()
	const head = `{"time":"2026-05-04T10:20:30.123456789Z","service":"gateway",`
	for _, c := range []struct{ name, line, want string }{
		{
			"a request",
			head + `"level":"INFO","msg":"request","method":"GET","route":"/bookings/{id}","status":200,"duration_ms":3.4512,"bytes":12,"tenant":"tn_1","request_id":"req_1"}`,
			"INFO  GET /bookings/{id} 200 3.5ms req_1",
		},
		{
			"a failed request",
			head + `"level":"ERROR","msg":"request","method":"POST","route":"/bookings","status":503,"duration_ms":15,"request_id":"req_2","code":"unavailable","error":"dial tcp: refused"}`,
			"ERROR POST /bookings 503 15.0ms req_2 unavailable dial tcp: refused",
		},
		{
			"an error that names its code",
			head + `"level":"ERROR","msg":"request","method":"GET","route":"/x","status":503,"duration_ms":1,"code":"unavailable","error":"unavailable: Later."}`,
			"ERROR GET /x 503 1.0ms unavailable: Later.",
		},
		{"a request without a route", head + `"level":"INFO","msg":"request","method":"GET","route":"","status":404,"duration_ms":0.2}`, "INFO  GET 404 0.2ms"},
		{
			"another line",
			head + `"level":"WARN","msg":"not ready","trace_id":"0af","check":"postgres","tries":3,"error":"no route"}`,
			"WARN  not ready: no route check=postgres tries=3",
		},
		{"nested values", head + `"level":"INFO","msg":"start","redis":{"addr":"x"},"list":[1,2]}`, `INFO  start list=[1,2] redis={"addr":"x"}`},
		{
			"a client's escape sequences", head + `"level":"ERROR","msg":"request","method":"GE\u001b[2JT","route":"/x","status":500,"duration_ms":1,"error":"\u001b]0;title\u0007\u009b31m \u202e\r\nbell"}`,
			`ERROR GE\x1b[2JT /x 500 1.0ms \x1b]0;title\a\u009b31m \u202e\r\nbell`,
		},
		{"a level that is none", head + `"level":"\u001b[0mLOUD","msg":"hm"}`, `\x1b[ hm`},
	} {
		want := at(t) + " gateway   | " + c.want
		if got := readable([]byte(c.line), "gateway   | ", false); got != want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, want)
		}
	}
	got := readable([]byte(head+`"level":"WARN","msg":"m"}`), "p ", true)
	if want := at(t) + " p \x1b[33mWARN \x1b[0m m"; got != want {
		t.Errorf("in colour %q, want %q", got, want)
	}
}

// TestLinesThatAreNotJSON checks that lines that are not JSON are shown with escaped control characters: a panic of the runtime, a
// partial line, and invalid UTF-8.
func TestLinesThatAreNotJSON(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"panic: runtime error":                 "panic: runtime error",
		"\tmain.go:12 +0x1d":                   "  main.go:12 +0x1d",
		`{"time":"2026-05-04T10:20:30Z","leve`: `{"time":"2026-05-04T10:20:30Z","leve`,
		`{"time":"yesterday","level":"WARN"}`:  `{"time":"yesterday","level":"WARN"}`,
		"red \x1b[31m \x9b \xff é 日 \uFFFD":    `red \x1b[31m \x9b \xff é 日 ` + "\uFFFD",
	} {
		got := readable([]byte(line), "p ", false)
		if _, text, _ := strings.Cut(got, " p       "); text != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
}

func TestStacksAndLongLinesAreBounded(t *testing.T) {
	t.Parallel()
	stack := "goroutine 1 [running]:\n" + strings.Repeat("main.f(...)\n\t/src/main.go:7 \x1b[2J\n", 50)
	line, err := json.Marshal(map[string]any{
		"time": time.Now(), "level": "ERROR", "msg": "request", "method": "GET", "route": "/x", "status": 500,
		"error": "panic: " + strings.Repeat("日", 10_000), "stack": stack,
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(readable(line, "p ", false), "\n")
	if len(shown) != 1+longestStack+1 || shown[len(shown)-1] != "    … 81 more lines in .run/logs" {
		t.Errorf("%d lines, the last %q", len(shown), shown[len(shown)-1])
	}
	if shown[1] != "    goroutine 1 [running]:" || shown[3] != `      /src/main.go:7 \x1b[2J` {
		t.Errorf("the stack begins %q", shown[1:4])
	}
	for _, text := range append(shown, readable([]byte(strings.Repeat("x", 70_000)), "p ", false)) {
		if n := len([]rune(text)); n > longestShown+40 {
			t.Errorf("%d characters: %.80q", n, text)
		}
		if strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("a control character in %.80q", text)
		}
	}
}

// TestConsole checks that the terminal shows only warnings, and with LOG=all also requests after the greeting. The log file, and
// an output that is not a terminal, contain every line unchanged.
func TestConsole(t *testing.T) {
	t.Parallel()
	const (
		late = `{"time":"2026-05-04T10:20:29Z","level":"INFO","msg":"request","method":"GET","route":"/start","status":200,"duration_ms":1}`
		info = `{"time":"2026-05-04T10:20:30Z","level":"INFO","msg":"request","method":"GET","route":"/x","status":200,"duration_ms":1}`
		warn = `{"time":"2026-05-04T10:20:30Z","level":"WARN","msg":"slow","why":"\u001b[2J"}`
		oops = "panic: oops"
	)
	for _, c := range []struct {
		terminal, all bool
		want          []string
	}{
		{true, false, []string{`WARN  slow why=\x1b[2J`, "panic: oops"}},
		{true, true, []string{"INFO  GET /x 200 1.0ms", `WARN  slow why=\x1b[2J`, "panic: oops"}},
		{false, false, []string{warn, oops}},
		{false, true, []string{info, warn, oops}},
	} {
		var screen strings.Builder
		dir := t.TempDir()
		con := &Console{out: &screen, terminal: c.terminal, dir: dir, files: map[string]*os.File{}}
		if greeted := time.Date(2026, 5, 4, 10, 20, 30, 0, time.UTC); c.all {
			con.all.Store(&greeted)
		}
		w := con.ServiceLog("gateway")
		for _, line := range []string{late, info, warn, "", oops} {
			if _, err := w.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		shown := strings.Split(strings.TrimSuffix(screen.String(), "\n"), "\n")
		if len(shown) != len(c.want) {
			t.Fatalf("%+v shows\n%s", c, screen.String())
		}
		for i, want := range c.want {
			if !strings.Contains(shown[i], "gateway   | ") || !strings.HasSuffix(shown[i], want) {
				t.Errorf("terminal %v, all %v: %q, want %q", c.terminal, c.all, shown[i], want)
			}
		}
		logged, err := os.ReadFile(filepath.Join(dir, "gateway.log"))
		if err != nil || string(logged) != late+"\n"+info+"\n"+warn+"\n\n"+oops+"\n" {
			t.Errorf("the file has %q (%v)", logged, err)
		}
	}
}
