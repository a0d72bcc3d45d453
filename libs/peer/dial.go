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
// drops packets instead of refusing connections. A lookup of the name is not part of an attempt. Dial returns the error of the last
// attempt, for which Unconnected is true.
func Dial(ctx context.Context, network, address string, limit time.Duration) (net.Conn, error) {
	return dial(ctx, resolver, network, address, limit)
}

func dial(ctx context.Context, n *names, network, address string, limit time.Duration) (net.Conn, error) {
	end := time.Now().Add(limit)
	for attempt, pause := 0, 5*time.Millisecond; ; attempt, pause = attempt+1, min(2*pause, longestPause) {
		began := time.Now()
		conn, err := connect(ctx, n, network, address, attempt, end)
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

// connect makes one attempt. Attempts use the addresses of a name in turn.
func connect(ctx context.Context, n *names, network, address string, attempt int, end time.Time) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if net.ParseIP(name) == nil {
		lookup, cancel := context.WithDeadline(ctx, end)
		found, err := n.addresses(lookup, name)
		cancel()
		if err != nil {
			return nil, err
		}
		name = found[attempt%len(found)]
	}
	dialer := net.Dialer{Timeout: min(dialAttempt, max(time.Until(end), time.Millisecond)), KeepAlive: 15 * time.Second}
	return dialer.DialContext(ctx, network, net.JoinHostPort(name, port))
}

// Unconnected reports whether an error means that no connection was made, so that nothing was sent.
func Unconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
