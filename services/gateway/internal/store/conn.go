package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// lateReadConn distinguishes a dead Redis from a busy gateway. When all processors are busy, a goroutine may run long after it
// became ready. A deadline that was set before has then passed, and net.Conn reports a time-out although the response arrived.
// Therefore the time-out begins with each read and write, and after a time-out the socket is read once more. Without this, a burst
// of requests would disable the limiter. TLS runs on top of it.
type lateReadConn struct {
	net.Conn
	raw     syscall.Conn
	timeout time.Duration
	endless atomic.Bool // the reader waits for messages of Sentinels, not for a response
}

// dialLateRead returns a function that dials connections. The time-out applies to accepting the connection, and to each response.
func dialLateRead(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		raw, ok := conn.(syscall.Conn)
		if !ok { // never for TCP
			return conn, nil
		}
		return &lateReadConn{Conn: conn, raw: raw, timeout: timeout}, nil
	}
}

// forwards the call
func (c *lateReadConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// SetReadDeadline only records whether there is a deadline: Read sets its own.
func (c *lateReadConn) SetReadDeadline(t time.Time) error {
	c.endless.Store(t.IsZero())
	return nil
}

// SetWriteDeadline does nothing: Write sets its own.
func (c *lateReadConn) SetWriteDeadline(time.Time) error { return nil }

// Write writes with the whole time-out.
func (c *lateReadConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Read reads with the whole time-out. When it ends, Read still returns the bytes that arrived.
func (c *lateReadConn) Read(b []byte) (int, error) {
	var end time.Time
	if !c.endless.Load() {
		end = time.Now().Add(c.timeout)
	}
	if err := c.Conn.SetReadDeadline(end); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if err == nil || n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	rc, rawErr := c.raw.SyscallConn()
	if rawErr != nil {
		return 0, err
	}
	got := -1
	rawErr = rc.Control(func(fd uintptr) {
		got, _, _ = syscall.Recvfrom(int(fd), b, syscall.MSG_DONTWAIT)
	})
	switch {
	case rawErr != nil || got < 0:
		return 0, err
	case got == 0:
		return 0, io.EOF
	default:
		return got, nil
	}
}
