package follow

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// maxLine is the maximum number of bytes in a line of a stream, and in the data of one message.
const maxLine = 2 << 20

// ErrTooLong reports that a stream contains a line or a message of more than maxLine bytes. A new stream would contain it again.
var ErrTooLong = errors.New("the stream has a message of more than 2 MiB")

// Message is one server-sent event.
type Message struct {
	ID    string // the last id of the stream, which may come from an earlier message
	Event string
	Data  []byte // its lines joined by "\n"; nil if the message only has an id
}

// Reader reads server-sent events as the HTML standard defines them (section 9.2.6), with lines that end with LF or CRLF. It
// ignores a message that ends before its empty line, including its id.
type Reader struct {
	lines *bufio.Scanner
	first bool
	id    string // the last id, which is returned with its message
}

// NewReader returns a reader of the stream r, from its beginning.
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
			m = Message{} // a message without data and id
			continue
		}
		named = r.field(&m, line) || named
		if len(m.Data) > maxLine {
			return Message{}, ErrTooLong
		}
	}
	return Message{}, r.end()
}

// field adds one line to the message and reports whether it is an id. A line that begins with a colon is a comment. Servers send
// comments to keep the connection open.
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

// end returns the error after the last line.
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
