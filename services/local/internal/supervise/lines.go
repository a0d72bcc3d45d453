package supervise

import (
	"bytes"
	"sync"
)

// LineWriter calls Line for each whole line written to it, without its end.
// It is safe for the two streams of one process.
type LineWriter struct {
	Line func(line []byte)

	mu   sync.Mutex
	rest []byte
}

const longestLine = 64 << 10

func (w *LineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	for {
		line, tail, ended := bytes.Cut(p, []byte{'\n'})
		if !ended {
			w.rest = append(w.rest, p...)
			if len(w.rest) > longestLine {
				w.Line(w.rest)
				w.rest = w.rest[:0]
			}
			return n, nil
		}
		if len(w.rest) > 0 {
			line = append(w.rest, line...)
			w.rest = w.rest[:0]
		}
		w.Line(line)
		p = tail
	}
}
