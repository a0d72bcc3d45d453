package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// ownDeadlines tells a dead Redis from a busy gateway. When all processors are taken, a goroutine may run
// long after it could: a deadline that was set before is over by then, and net.Conn reports it although the
// answer lies in the socket. So time is counted only while Redis has to act, from the moment of each read
// and write, and before a deadline is believed the socket is asked once more. Without this a burst of
// requests would open the limiter.
type ownDeadlines struct{ timeout time.Duration }

// DialHook wraps each new connection.
func (d ownDeadlines) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		raw, ok := conn.(syscall.Conn)
		if !ok { // TLS: the bytes in the socket are not the answer
			return conn, nil
		}
		return &patientConn{Conn: conn, raw: raw, timeout: d.timeout}, nil
	}
}

// ProcessHook changes nothing.
func (ownDeadlines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (ownDeadlines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type patientConn struct {
	net.Conn
	raw     syscall.Conn
	timeout time.Duration
}

// SyscallConn lets the pool check the connection.
func (c *patientConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() } //nolint:wrapcheck // passes on

// SetReadDeadline changes nothing: Read sets its own.
func (c *patientConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline changes nothing: Write sets its own.
func (c *patientConn) SetWriteDeadline(time.Time) error { return nil }

// Write gives the whole time-out to the write itself.
func (c *patientConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err //nolint:wrapcheck // a writer passes its error on
	}
	return c.Conn.Write(b) //nolint:wrapcheck // a writer passes its error on
}

// Read gives the whole time-out to the read itself, and at its end still takes what has arrived.
func (c *patientConn) Read(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
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
