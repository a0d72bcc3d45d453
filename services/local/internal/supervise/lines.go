package supervise

import (
	"bytes"
	"sync"
)

// LineWriter calls Line for each complete line written to it, without the newline. It truncates a line that is too long. It is
// safe for concurrent use by the two streams of one process.
type LineWriter struct {
	Line func(line []byte)

	mu   sync.Mutex
	rest []byte
}

const longestLine = 64 << 10

// Write implements io.Writer.
func (w *LineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	for {
		line, tail, ended := bytes.Cut(p, []byte{'\n'})
		w.rest = append(w.rest, line[:min(len(line), longestLine-len(w.rest))]...)
		if !ended {
			return n, nil
		}
		w.Line(w.rest)
		w.rest = w.rest[:0]
		p = tail
	}
}
