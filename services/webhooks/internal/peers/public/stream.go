package public

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// maxLine bounds a line of a stream, and the data of one message, in bytes.
const maxLine = 2 << 20

// ErrTooLong says that a stream holds a line or a message above the bound; it would at each attempt.
var ErrTooLong = errors.New("the stream holds a message of more than 2 MiB")

// Message is one server-sent event.
type Message struct {
	ID    string // the last id that the stream has named, also in earlier messages
	Event string
	Data  []byte // its lines joined by "\n"; nil when there were none, and the message only moves the id
}

// Reader reads server-sent events as the HTML standard defines them (section 9.2.6), of lines that end with LF
// or CRLF. Of a message that is cut off before its empty line nothing is seen, its id neither.
type Reader struct {
	lines *bufio.Scanner
	first bool
	id    string // takes effect with the message that names it
}

// NewReader reads r from the beginning of the stream.
func NewReader(r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &Reader{lines: lines, first: true}
}

// Next returns the next message, io.EOF at the end, ErrTooLong, or the error of the underlying reader.
func (r *Reader) Next() (Message, error) {
	var m Message
	var named bool
	for r.lines.Scan() {
		line := r.lines.Bytes()
		if r.first {
			line, r.first = bytes.TrimPrefix(line, []byte("\ufeff")), false
		}
		if len(line) == 0 && (named || m.Data != nil) {
			m.ID = r.id
			return m, nil
		}
		if len(line) == 0 {
			m = Message{} // it had neither data nor id
			continue
		}
		named = r.field(&m, line) || named
		if len(m.Data) > maxLine {
			return Message{}, ErrTooLong
		}
	}
	return Message{}, r.end()
}

// field adds one line to the message and reports whether it named an id. A line that begins with a colon is a
// comment: a sign of life.
func (r *Reader) field(m *Message, line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		m.Event = string(value)
	case "data":
		if m.Data == nil {
			m.Data = []byte{}
		} else {
			m.Data = append(m.Data, '\n')
		}
		m.Data = append(m.Data, value...)
	case "id":
		if id := string(value); !strings.Contains(id, "\x00") {
			r.id = id
			return true
		}
	}
	return false
}

func (r *Reader) end() error {
	err := r.lines.Err()
	switch {
	case err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return ErrTooLong
	}
	return err
}
