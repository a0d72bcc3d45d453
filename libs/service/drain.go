package service

import (
	"net"
	"net/http"
	"time"
)

// The rest of a drain, in pauses of a fiftieth of StopDelay.
const (
	quietPauses = 10 // pauses in which no client connects end it
	mostPauses  = 50
)

// drain continues to serve after the process becomes not ready, until load balancers notice: for StopDelay, and then until no
// client has connected for a fifth of StopDelay, at most for another StopDelay. Meanwhile each response closes its connection, so
// that clients reconnect to another process. Idle connections stay open: a client may be sending its next request on one.
//
// The time without new connections is counted in pauses, because a process without processor time accepts none either. Closing the
// listener would reset the connections that wait in its queue.
func (rt *Runtime) drain() {
	delay := rt.Common.StopDelay
	if delay <= 0 {
		return
	}
	time.Sleep(delay)
	known := rt.connections.Load()
	for quiet, n := 0, 0; quiet < quietPauses && n < mostPauses; n++ {
		time.Sleep(delay / mostPauses)
		quiet++
		if now := rt.connections.Load(); now != known {
			known, quiet = now, 0
		}
	}
}

// countConnection is the ConnState of a server.
func (rt *Runtime) countConnection(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		rt.connections.Add(1)
	}
}

// closing wraps a handler. Each response whose header is written during the stop then closes its connection.
func (rt *Runtime) closing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&closingWriter{ResponseWriter: w, rt: rt}, r)
	})
}

type closingWriter struct {
	http.ResponseWriter

	rt    *Runtime
	wrote bool
}

// WriteHeader adds Connection: close during the stop.
func (w *closingWriter) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.wrote = true
		if w.rt.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the header first if the handler did not.
func (w *closingWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which streams need.
func (w *closingWriter) Flush() {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (w *closingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
