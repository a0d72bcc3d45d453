package pg

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// dialAttempt is how long one attempt to open a network connection may take.
	dialAttempt = 500 * time.Millisecond
	// dialAttempts is the maximum number of attempts. All of them take less than acquireTimeout.
	dialAttempts = 6
)

// dial opens a network connection. The address of a server or pooler that disappeared together with its network drops packets for as long
// as a load balancer routes to it, so an attempt without a response is repeated from another port. A refused connection is not, because the
// next address of the URL can be the right one.
func dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialAttempt, KeepAlive: 15 * time.Second}
	for range dialAttempts {
		var silent net.Error
		if conn, err = dialer.DialContext(ctx, network, address); !errors.As(err, &silent) || !silent.Timeout() || ctx.Err() != nil {
			break
		}
	}
	return conn, err //nolint:wrapcheck // pgx adds the address
}
