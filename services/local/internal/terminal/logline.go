package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a log line on the terminal. The files in .run/logs contain the whole line.
const (
	longestShown = 300 // characters of a line
	longestStack = 20  // lines of a stack
)

// logLine is one JSON line of a service's log.
type logLine struct {
	Time      time.Time `json:"time"`
	Level     string    `json:"level"`
	Message   string    `json:"msg"`
	Method    string    `json:"method"`
	Route     string    `json:"route"`
	Status    int       `json:"status"`
	Duration  float64   `json:"duration_ms"`
	RequestID string    `json:"request_id"`
	Code      string    `json:"code"`
	Error     string    `json:"error"`
	Stack     string    `json:"stack"`
}

// shownElsewhere are the attributes that the line shows in a different form, or that are not useful in the log of one machine.
var shownElsewhere = []string{"time", "level", "msg", "service", "error", "stack", "trace_id", "tenant", "mode", "credential"}

// readable formats a line of a process for people: time, process, level, and message, followed by the stack of a panic. A line
// that is not JSON stays unchanged. Control characters are escaped.
func readable(line []byte, process string, colour bool) string {
	l, rest, ok := parse(line)
	if !ok {
		return now(time.Now()) + " " + process + "      " + shorten(printable(string(line)))
	}
	text := l.Message + l.attributes(rest)
	if l.Message == "request" {
		text = l.request()
	}
	out := now(l.Time) + " " + process + paintLevel(l.Level, colour) + " " + shorten(printable(text))
	if l.Stack == "" {
		return out
	}
	frames := strings.Split(strings.TrimRight(l.Stack, "\n"), "\n")
	for _, frame := range frames[:min(len(frames), longestStack)] {
		out += "\n    " + shorten(printable(frame))
	}
	if more := len(frames) - longestStack; more > 0 {
		out += fmt.Sprintf("\n    … %d more lines in .run/logs", more)
	}
	return out
}

func now(t time.Time) string { return t.Local().Format("15:04:05.000") }

// parse decodes one JSON object. rest contains all its attributes.
func parse(line []byte) (l logLine, rest map[string]json.RawMessage, ok bool) {
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &rest) != nil {
		return l, nil, false
	}
	return l, rest, json.Unmarshal(line, &l) == nil
}

// request returns method, route, status, milliseconds, request id, and the error.
func (l logLine) request() string {
	code := l.Code
	if strings.HasPrefix(l.Error, code+":") {
		code = "" // the error contains it
	}
	fields := []string{l.Method, l.Route, strconv.Itoa(l.Status), strconv.FormatFloat(l.Duration, 'f', 1, 64) + "ms", l.RequestID, code, l.Error}
	return strings.Join(slices.DeleteFunc(fields, func(word string) bool { return word == "" }), " ")
}

// attributes returns the error and then the other attributes, sorted by name.
func (l logLine) attributes(rest map[string]json.RawMessage) string {
	out := ""
	if l.Error != "" {
		out = ": " + l.Error
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if slices.Contains(shownElsewhere, name) {
			continue
		}
		var text string
		if json.Unmarshal(rest[name], &text) != nil {
			text = string(rest[name])
		}
		out += " " + name + "=" + text
	}
	return out
}

func paintLevel(level string, colour bool) string {
	text := fmt.Sprintf("%-5.5s", printable(level))
	colours := map[string]int{"WARN": 33, "ERROR": 31}
	if code := colours[level]; colour && code != 0 {
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text)
	}
	return text
}

// printable escapes control characters and invalid UTF-8 as Go does.
func printable(text string) string {
	text = strings.ReplaceAll(text, "\t", "  ")
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			out.WriteRune(r)
		} else {
			quoted := strconv.QuoteToASCII(text[:size])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return out.String()
}

// shorten truncates a text that is longer than a line.
func shorten(text string) string {
	if utf8.RuneCountInString(text) <= longestShown {
		return text
	}
	return string([]rune(text)[:longestShown]) + " …"
}
