// Package redisx opens a Redis that may fail at any time: every command has a short deadline and is never retried, and
// its duration is added to the log line. The user of the package provides a circuit breaker.
package redisx

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/secret"
)

// Options are the limits. A zero field uses its default.
type Options struct {
	Timeout  time.Duration // of one command or pipeline, including dialing; 15 ms
	PoolSize int           // connections per node; 32
	Access   Access
	Login    secret.Setting // the address; if its file changes, new connections use its user and password
	// Dial creates the network connections, below TLS if it is used. The default is a plain dialer.
	Dial dialFunc
}

// Open returns a client for the address. It does not connect. Blocking commands are not possible. Only in a Cluster can a command
// be sent twice: to the slot's new node, or after the connection to a node broke.
func Open(address string, options ...Options) (redis.UniversalClient, error) {
	silenceLibrary()
	opt := Options{Timeout: 15 * time.Millisecond, PoolSize: 32}
	for _, o := range options {
		if o.Timeout > 0 {
			opt.Timeout = o.Timeout
		}
		if o.PoolSize > 0 {
			opt.PoolSize = o.PoolSize
		}
		opt.Access, opt.Dial, opt.Login = o.Access, o.Dial, o.Login
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("redis address: %w", redact(err))
	}
	o, secure, err := parse(u, opt.Access)
	if err != nil {
		return nil, fmt.Errorf("redis address %s: %w", u.Redacted(), err)
	}
	if opt.Dial == nil {
		opt.Dial = (&net.Dialer{Timeout: opt.Timeout, KeepAlive: keepAlive}).DialContext
	}
	o.Dialer = opt.Dial
	if secure != nil {
		o.Dialer = overTLS(secure, u.Hostname(), opt.Dial)
	}
	if err := follow(o, u, opt.Login); err != nil {
		return nil, err
	}
	o.MaxRetries, o.MaxRedirects, o.MinRetryBackoff, o.ContextTimeoutEnabled = -1, 1, -1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = opt.Timeout, opt.Timeout, opt.Timeout, opt.Timeout
	o.DialerRetries = 1 // the default of 5 would dial for half a second
	o.PoolSize, o.MinIdleConns, o.ConnMaxIdleTime = opt.PoolSize, min(4, opt.PoolSize), 5*time.Minute
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewUniversalClient(o)
	client.AddHook(deadline{opt.Timeout})
	return client, nil
}

// silenceLibrary stops the library from writing a line of plain text to stderr for each failed dial: the caller gets the
// errors, and an unreachable Redis would fill the log.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(ctx context.Context, format string, v ...any) {
	slog.DebugContext(ctx, fmt.Sprintf(format, v...))
}

// redact removes the address, which can contain a password, from a parse error.
func redact(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // url.Parse returns exactly this
		return e.Err
	}
	return err
}

// deadline limits a whole command. Dialing, handshake, writing and reading each have their own time-out. Without deadline, a Redis
// that hangs in each step would delay a command by the sum of these time-outs.
type deadline struct{ timeout time.Duration }

func (d deadline) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (d deadline) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer obs.Since(ctx, "redis_ms", time.Now())
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		return next(ctx, cmd)
	}
}

func (d deadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer obs.Since(ctx, "redis_ms", time.Now())
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		return next(ctx, cmds)
	}
}
