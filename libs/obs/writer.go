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

// Writer buffers its input for at most 50 ms, because a system call per log line would be a tenth of a gateway's work. A kill -9
// loses the buffered lines. Each write to the target ends with a whole line. Writer is safe for concurrent use.
type Writer struct {
	to    io.Writer
	mu    sync.Mutex
	lines []byte
	timer *time.Timer
}

// NewWriter returns a Writer that writes to `to`. Call Flush before the process ends.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer. Its error is always nil, because an error could only concern earlier lines.
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

// Flush writes the buffered lines.
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
		_, _ = w.to.Write(w.lines) // the error cannot be reported elsewhere
		w.lines = w.lines[:0]
	}
}
