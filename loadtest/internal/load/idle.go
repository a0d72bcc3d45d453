package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Idle is a number of keep-alive connections that wait for their next request.
type Idle struct {
	target Target
	conns  []net.Conn
}

const (
	idleAtOnce = 32 // requests at the same time
	// idleSources is the number of loopback addresses from which the connections come, because one address has only some 28,000
	// ports, and recently closed connections occupy some of them.
	idleSources = 8
)

// OpenIdle opens n connections and sends one request on each. Call Close even after an error.
func OpenIdle(ctx context.Context, t Target, n int) (*Idle, error) {
	i := &Idle{target: t, conns: make([]net.Conn, n)}
	err := i.each(ctx, func(c *conn, at int) (err error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+at%idleSources))}} //nolint:gosec // below 10
		if i.conns[at], err = dialer.DialContext(ctx, "tcp", t.Addr); err != nil {
			return fmt.Errorf("connection %d to %s: %w", at, t.Addr, err)
		}
		return i.send(c, at)
	})
	return i, err
}

// Again sends one more request on each connection.
func (i *Idle) Again(ctx context.Context) error { return i.each(ctx, i.send) }

// each calls do for each connection, with a conn that can send on it. A conn has large buffers, so each worker has only one.
func (i *Idle) each(ctx context.Context, do func(c *conn, at int) error) error {
	var next atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for range idleAtOnce {
		all.Go(func() error {
			c := &conn{in: bufio.NewReaderSize(nil, 32<<10), target: &i.target}
			for ctx.Err() == nil {
				at := int(next.Add(1) - 1)
				if at >= len(i.conns) {
					return nil
				}
				if err := do(c, at); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

func (i *Idle) send(c *conn, at int) error {
	c.Conn = i.conns[at]
	c.in.Reset(c.Conn)
	return c.send(at)
}

// Close closes all connections at once: a reset leaves no closed connection behind that would occupy its port.
func (i *Idle) Close() error {
	var errs []error
	for _, c := range i.conns {
		if t, ok := c.(*net.TCPConn); ok {
			errs = append(errs, t.SetLinger(0), t.Close())
		}
	}
	return errors.Join(errs...)
}
