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

// lateReadConn tells a dead Redis from a busy gateway. When all processors are taken, a goroutine may run
// long after it could: a deadline that was set before is over by then, and net.Conn reports it although the
// answer lies in the socket. So time is counted only while Redis has to act, from the moment of each read
// and write, and before a deadline is believed the socket is asked once more. Without this a burst of
// requests would open the limiter. TLS goes over it.
type lateReadConn struct {
	net.Conn
	raw     syscall.Conn
	timeout time.Duration
	endless atomic.Bool // who reads waits for news of Sentinels, not for an answer
}

// patient dials connections that give Redis the time-out to take the connection, and for each answer.
func dialLateRead(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err //nolint:wrapcheck // names the address
		}
		raw, ok := conn.(syscall.Conn)
		if !ok { // never with TCP
			return conn, nil
		}
		return &lateReadConn{Conn: conn, raw: raw, timeout: timeout}, nil
	}
}

// SyscallConn lets the pool check the connection.
func (c *lateReadConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() } //nolint:wrapcheck // passes on

// SetReadDeadline says only whether there is one: Read sets its own.
func (c *lateReadConn) SetReadDeadline(t time.Time) error {
	c.endless.Store(t.IsZero())
	return nil
}

// SetWriteDeadline changes nothing: Write sets its own.
func (c *lateReadConn) SetWriteDeadline(time.Time) error { return nil }

// Write gives the whole time-out to the write itself.
func (c *lateReadConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err //nolint:wrapcheck // a writer passes its error on
	}
	return c.Conn.Write(b) //nolint:wrapcheck // a writer passes its error on
}

// Read gives the whole time-out to the read itself, and at its end still takes what has arrived.
func (c *lateReadConn) Read(b []byte) (int, error) {
	var end time.Time
	if !c.endless.Load() {
		end = time.Now().Add(c.timeout)
	}
	if err := c.Conn.SetReadDeadline(end); err != nil {
		return 0, err //nolint:wrapcheck // a reader passes its error on
	}
	n, err := c.Conn.Read(b)
	if err == nil || n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err //nolint:wrapcheck // a reader passes its error on
	}
	rc, rawErr := c.raw.SyscallConn()
	if rawErr != nil {
		return 0, err //nolint:wrapcheck // the deadline
	}
	got := -1
	rawErr = rc.Control(func(fd uintptr) {
		got, _, _ = syscall.Recvfrom(int(fd), b, syscall.MSG_DONTWAIT) //nolint:errcheck // none is none
	})
	switch {
	case rawErr != nil || got < 0:
		return 0, err //nolint:wrapcheck // the deadline
	case got == 0:
		return 0, io.EOF
	default:
		return got, nil
	}
}
