package load

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
)

const (
	idleAtOnce = 32      // requests at the same time
	idleBuffer = 4 << 10 // bytes
	// idleSources is the number of loopback addresses from which the connections come, because one address has only some 28,000
	// ports, and recently closed connections occupy some of them.
	idleSources = 8
)

// Idle opens n keep-alive connections and sends one request on each. While they are idle, it calls measure. Then it sends another
// request on each.
func Idle(ctx context.Context, t Target, n int, measure func() error) error {
	open := make([]*conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	each := func(do func(ctx context.Context, i int) error) error {
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(idleAtOnce)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			all.Go(func() error { return do(ctx, i) })
		}
		return all.Wait()
	}
	err := each(func(ctx context.Context, i int) error {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%idleSources))}}
		c, err := dialer.DialContext(ctx, "tcp", t.Addr)
		if err != nil {
			return fmt.Errorf("connection %d to %s: %w", i, t.Addr, err)
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset leaves no closed connection behind that would occupy its port
		}
		open[i] = &conn{Conn: c, in: bufio.NewReaderSize(c, idleBuffer), target: &t}
		return open[i].send(i)
	})
	if err != nil {
		return err
	}
	if err := measure(); err != nil {
		return err
	}
	return each(func(_ context.Context, i int) error { return open[i].send(i) })
}
