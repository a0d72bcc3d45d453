package stack

import (
	"bytes"
	"io"
	"regexp"
	"strings"
)

// progress stores everything that bin/local prints, and shows only its progress lines, because bin/local also prints keys.
type progress struct {
	log  io.Writer
	say  func(string, ...any)
	rest []byte
}

var timed = regexp.MustCompile(`^ *\d+\.\ds  (.*)`)

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte{'\n'})
		if !whole {
			break
		}
		if found := timed.FindSubmatch(line); found != nil {
			p.say("  %s", strings.TrimSpace(string(found[1])))
		}
		p.rest = rest
	}
	return p.log.Write(b)
}
