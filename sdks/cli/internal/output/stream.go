// Package output writes responses as tables, JSON, YAML, CSV and results of jq filters.
package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Stream is where a command writes.
type Stream struct {
	io.Writer

	Terminal bool
	Width    int // columns of the terminal, or 0 if it is none
	Color    bool
}

// NewStream returns the stream of a file. Colors are for terminals, unless NO_COLOR is set.
func NewStream(f *os.File) Stream {
	s := Stream{Writer: f, Terminal: term.IsTerminal(int(f.Fd()))}
	if !s.Terminal {
		return s
	}
	s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = width
	}
	return s
}

// The styles of text on a terminal.
const (
	Bold = "1"
	Red  = "31"
)

// Style returns text in a style, if the stream has colors.
func (s Stream) Style(style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Text writes text that comes from the platform. On a terminal, it shows control characters as escapes.
func (s Stream) Text(text string) error {
	if s.Terminal {
		text = Visible(text)
	}
	_, err := io.WriteString(s, text)
	return err
}

// Copy writes a document of text as it arrives.
func (s Stream) Copy(from io.Reader) error {
	if !s.Terminal {
		_, err := io.Copy(s, from)
		return err
	}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if failed := s.Text(line); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Visible returns text with control characters, and characters that change the direction of text, as escapes. Otherwise, the name of a
// customer could move the cursor, or hide a part of the output.
func Visible(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}
