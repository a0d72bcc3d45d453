package obs

import (
	"io"
	"sync"
	"time"
)

const (
	flushSize  = 32 << 10
	flushEvery = 50 * time.Millisecond
)

// Writer collects what is written to it and hands it on in pieces, at the latest after 50 ms: a system call per
// log line is a tenth of a gateway's work. What the last moments before a kill -9 have written is lost. A
// piece ends with a whole line. It is safe for concurrent use.
type Writer struct {
	to    io.Writer
	mu    sync.Mutex
	lines []byte
	timer *time.Timer
}

// NewWriter returns a Writer in front of to; call Flush before the process ends.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer. An error is that of an earlier piece at most, so nobody can act on it: none is told.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line...)
	switch {
	case len(w.lines) >= flushSize:
		w.flush()
	case w.timer == nil:
		w.timer = time.AfterFunc(flushEvery, w.Flush)
	}
	return len(line), nil
}

// Flush hands on what has come together.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
}

func (w *Writer) flush() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if len(w.lines) > 0 {
		_, _ = w.to.Write(w.lines) // there is nowhere else to say it
		w.lines = w.lines[:0]
	}
}
