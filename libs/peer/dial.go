package peer

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// ConnectLimit is the maximum time that a call tries to connect, within its own deadline.
	ConnectLimit = 3 * time.Second
	// dialAttempt is how long one attempt to connect may take.
	dialAttempt = 200 * time.Millisecond
	// longestPause is the longest pause between two attempts that fail immediately, such as refused connections: 5, 10, 20, 40, 80,
	// 160 ms.
	longestPause = 160 * time.Millisecond
)

// Dial connects to one of the processes behind an address, for as long as limit allows. After a failed attempt it tries again,
// regardless of the request's method, because nothing was sent. A load balancer that has not noticed that a process is gone may
// select a running one for the next attempt. Each attempt is short, because a process that disappeared together with its network
// drops packets instead of refusing connections. Dial returns the error of the last attempt, for which Unconnected is true.
func Dial(ctx context.Context, network, address string, limit time.Duration) (net.Conn, error) {
	end := time.Now().Add(limit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		dialer := net.Dialer{Timeout: min(dialAttempt, end.Sub(began)), KeepAlive: 15 * time.Second}
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		wait := max(0, pause-time.Since(began))
		if time.Until(end) <= wait {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// Unconnected reports whether an error means that no connection was made, so that nothing was sent.
func Unconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
